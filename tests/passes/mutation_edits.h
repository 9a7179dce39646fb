// The building blocks of mutations (mutations.h): the node of a graph to change, and the change.
#pragma once

#include <functional>
#include <string>

#include "framework/ir/graph.h"

namespace zg::testing {

using NodeFilter = std::function<bool(const ir::Node&)>;
// Returns false if the change does not apply to this node, which is then unchanged.
using NodeChange = std::function<bool(ir::Graph&, ir::Node*)>;
using GraphChange = std::function<bool(ir::Graph&, unsigned choice)>;

// Changes one of the nodes that pass the filter: the first from `choice` on to which the change
// applies.
GraphChange One(const NodeFilter& filter, const NodeChange& change);

// --- Selection of a node ---

NodeFilter Op(const std::string& name);
NodeFilter In(ir::SectionKind kind, const NodeFilter& filter);
NodeFilter AssignOf(const NodeFilter& producer);  // an assignment of a value that such a node
                                                  // computes
NodeFilter Copied(const std::string& op);         // made by the pass recompute
bool IsUpdate(const ir::Node& node);
bool AnyNode(const ir::Node& node);  // a node that has inputs

bool SameKind(const ir::Value& a, const ir::Value& b);  // the same type and placement

// --- Inputs ---

// Returns false if the node reads that value already.
bool Replace(ir::Graph& graph, ir::Node* node, int index, ir::Value* value);
// Replaces input `index` by another value of its kind that exists at that place.
NodeChange ReadAnother(int index, const NodeFilter& producer = nullptr);
NodeChange SwapInputs(int a, int b);
// Removes input `index`; -1 is the last one.
NodeChange DropInput(int index);

// --- Readers ---

// Makes the readers of one output read another.
NodeChange SwapOutputs(int a, int b);
// Makes readers of the result read input `index` instead.
NodeChange LeaveOut(int index = 0);
bool Erase(ir::Graph& graph, ir::Node* node);

// --- Operation ---

NodeChange Multiply(const std::string& attribute, double factor);
NodeChange AddTo(const std::string& attribute, int64_t difference);
NodeChange SetSbp(int output, Sbp from, Sbp to);
// For a fused_elementwise: another function in a statement, another factor.
bool SwapStatements(ir::Graph& graph, ir::Node* node);
bool ChangeFactor(ir::Graph& graph, ir::Node* node);

// --- Place and time of stores ---

// Makes assignments of the same type write each other's variable.
bool SwapTargets(ir::Graph& graph, ir::Node* node);
// Swaps two stored tensors of one variable.
bool SwapTensors(ir::Graph& graph, Role role);
// Moves an assignment in the middle of a step to the update section.
bool AccumulateInUpdate(ir::Graph& graph, ir::Node* node);
// Moves an update, with its assignment and its inputs, before a reader of the value that it
// overwrites.
bool UpdateTooEarly(ir::Graph& graph, ir::Node* update);

}  // namespace zg::testing
