// What mutations (mutations.h) are made of: which node of a graph they take, and what happens to it.
#pragma once

#include <functional>
#include <string>

#include "framework/ir/graph.h"

namespace zg::testing {

using NodeFilter = std::function<bool(const ir::Node&)>;
// False: it cannot happen to this node, and nothing has.
using NodeChange = std::function<bool(ir::Graph&, ir::Node*)>;
using GraphChange = std::function<bool(ir::Graph&, unsigned choice)>;

// Changes one of the nodes that pass the filter: the first from `choice` on at which it works.
GraphChange One(const NodeFilter& filter, const NodeChange& change);

// --- Which node ---

NodeFilter Op(const std::string& name);
NodeFilter In(ir::SectionKind kind, const NodeFilter& filter);
NodeFilter AssignOf(const NodeFilter& producer);  // an assignment of what such a node computes
NodeFilter Copied(const std::string& op);         // one that the pass recompute has made
bool IsUpdate(const ir::Node& node);
bool AnyNode(const ir::Node& node);  // with inputs

bool SameKind(const ir::Value& a, const ir::Value& b);  // of one type and placement

// --- What it reads ---

// False if it reads that already.
bool Replace(ir::Graph& graph, ir::Node* node, int index, ir::Value* value);
// Input `index` becomes another value of its kind that exists at that place.
NodeChange ReadAnother(int index, const NodeFilter& producer = nullptr);
NodeChange SwapInputs(int a, int b);
// Without input `index`; -1 is the last one.
NodeChange DropInput(int index);

// --- What reads it ---

// The readers of one output read another.
NodeChange SwapOutputs(int a, int b);
// Readers of the result read input `index` instead.
NodeChange LeaveOut(int index = 0);
bool Erase(ir::Graph& graph, ir::Node* node);

// --- What it does ---

NodeChange Multiply(const std::string& attribute, double factor);
NodeChange AddTo(const std::string& attribute, int64_t difference);
NodeChange SetSbp(int output, Sbp from, Sbp to);
// Of a fused_elementwise: another function in a statement, another factor.
bool SwapStatements(ir::Graph& graph, ir::Node* node);
bool ChangeFactor(ir::Graph& graph, ir::Node* node);

// --- Where and when it stores ---

// Assignments of the same type write each other's variable.
bool SwapTargets(ir::Graph& graph, ir::Node* node);
// Two stored tensors of one variable change places.
bool SwapTensors(ir::Graph& graph, Role role);
// An assignment that happens in the middle of a step moves to the update section.
bool AccumulateInUpdate(ir::Graph& graph, ir::Node* node);
// An update, with its assignment and what it needs, before a reader of what it overwrites.
bool UpdateTooEarly(ir::Graph& graph, ir::Node* update);

}  // namespace zg::testing
