// Finding what the ZeRO passes work on: the optimizer's update nodes, and the placement of
// a shard.
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

// Whether there is anything to shard: the mesh has axes over which ZeRO shards (ir/mesh.h), with
// more than one rank.
bool HasShardAxes(const ir::Graph& graph);

// How a bucket lies where it is whole for its readers: split by the axes that its parameters are
// split along, B along the others.
NdSbp WholeSbp(const ir::Graph& graph, const ir::Value& bucket);

// And where ZeRO shards it: its flat dim split along the axes of ZeRO, too.
NdSbp ShardedSbp(const ir::Graph& graph, const ir::Value& bucket);

// Those of the bucket that the update updates.
NdSbp WholeSbp(const ir::Graph& graph, const ir::Node& update);
NdSbp ShardedSbp(const ir::Graph& graph, const ir::Node& update);

// Up to which stage ZeRO shards what the update updates (choose-stages).
int64_t StageOf(const ir::Node& update);

// Over how many ranks a bucket is sharded; 1: not at all.
int NumShards(const ir::Graph& graph);

// Whether its states have a number for each row and column of matrices (ops/factored_update.cc).
bool IsFactored(const ir::Node& update);

// Whether its states are codes, with a scale for each block of elements (ops/quantised_update.cc).
bool IsQuantised(const ir::Node& update);

// The variable that a value is, or is a place or view of.
ir::Value* VariableOf(ir::Value* value);

// The `assign` through which an update's new parameters reach the variable that the model reads:
// the updated one itself, or its 16-bit copy where that is a master (master-weights).
ir::Node* ParameterAssign(const ir::Node& update);

// Nodes do not grow inputs: the update is replaced by one that has these.
Status ReplaceUpdate(ir::Graph& graph, ir::Node* update, const std::vector<ir::Value*>& inputs);

// For updates that look at whole tensors. The bucket's elements at which the ranks' parts begin, of
// each rank its own, as a value before `update`.
StatusOr<ir::Value*> PartBegins(ir::Graph& graph, ir::Node* update);

// A gradient that is a pending sum is placed before the update; else it would be summed for each of
// its readers.
Status SumGradientOnce(ir::Graph& graph, ir::Node* update);

// The nodes of the section that read the value, each once, in execution order.
std::vector<ir::Node*> UsersIn(const ir::Graph& graph, const ir::Section& section,
                               const ir::Value& value);

}  // namespace zg::zero
