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
std::vector<ir::Node*> UpdateNodes(const ir::Graph& graph);

// The same for a pass that works on placements. Error: collectives stand between an update and its
// variable already, so `pass` comes too late.
StatusOr<std::vector<ir::Node*>> UnboxedUpdateNodes(const ir::Graph& graph, std::string_view pass);

// The axis along which ZeRO shards: "data". -1 when the mesh has none or it has one rank: nothing
// to shard.
int ShardAxis(const ir::Graph& graph);

// B on every axis, S(0) on the shard axis.
NdSbp ShardedSbp(const ir::Graph& graph);

// True for a bucket that the user's shard_min_elements keeps whole.
bool IsReplicated(const ir::Node& update);

bool IsVariable(const ir::Value& value);

// The variable that a value is, or is a place or view of.
ir::Value* VariableOf(ir::Value* value);

// The `assign` through which an update's new parameters reach the variable that the model reads:
// the updated one itself, or its 16-bit copy where that is a master (master-weights).
ir::Node* ParameterAssign(const ir::Node& update);

// The nodes of the section that read the value, each once, in execution order.
std::vector<ir::Node*> UsersIn(const ir::Graph& graph, const ir::Section& section,
                               const ir::Value& value);

}  // namespace zg::zero
