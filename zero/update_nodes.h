// Finding what the ZeRO passes work on: the optimizer's update nodes, and the mesh axis they shard
// over.
#pragma once

#include <string_view>
#include <vector>

#include "framework/base/status.h"
#include "framework/ir/graph.h"

namespace zg::zero {

// The update nodes in execution order: inputs are parameter, gradient, state...; outputs parameter,
// state....
std::vector<Node*> UpdateNodes(const Graph& graph);

// The same for a pass that works on placements. Error: collectives stand between an update and its
// variable already, so `pass` comes too late.
StatusOr<std::vector<Node*>> UnboxedUpdateNodes(const Graph& graph, std::string_view pass);

// The axis along which ZeRO shards: "data". -1 when the mesh has none or it has one rank: nothing
// to shard.
int ShardAxis(const Graph& graph);

// B on every axis, S(0) on the shard axis.
NdSbp ShardedSbp(const Graph& graph);

// True for a bucket that the user's shard_min_elements keeps whole.
bool IsReplicated(const Node& update);

// The variable that a value is, or is a place or view of.
Value* VariableOf(Value* value);

// The `assign` through which an update's new parameters reach the variable that the model reads:
// the updated one itself, or its 16-bit copy where that is a master (master-weights).
Node* ParameterAssign(const Node& update);

// The nodes of the section that read the value, each once, in execution order.
std::vector<Node*> UsersIn(const Graph& graph, const Section& section, const Value& value);

}  // namespace zg::zero
