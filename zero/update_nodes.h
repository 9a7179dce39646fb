// Helpers of the ZeRO passes: the optimizer's update nodes, and the placement of a shard.
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

// The placement in which a bucket is whole for its readers: split by the axes that its parameters
// are split along, B along the others.
NdSbp WholeSbp(const ir::Graph& graph, const ir::Value& bucket);

// The placement in which ZeRO shards it: its flat dim is split along the axes of ZeRO, too.
NdSbp ShardedSbp(const ir::Graph& graph, const ir::Value& bucket);

// The placements of the bucket that the update updates.
NdSbp WholeSbp(const ir::Graph& graph, const ir::Node& update);
NdSbp ShardedSbp(const ir::Graph& graph, const ir::Node& update);

// The highest stage up to which ZeRO shards the update's bucket (choose-stages).
int64_t StageOf(const ir::Node& update);

// The number of ranks that a bucket is sharded over; 1: it is not sharded.
int NumShards(const ir::Graph& graph);

// Whether its states have one number for each row and column of matrices (ops/factored_update.cc).
bool IsFactored(const ir::Node& update);

// Whether its states are 8-bit codes with a scale for each block of elements
// (ops/quantised_update.cc).
bool IsQuantised(const ir::Node& update);

// The variable that a value is, or of which it is a place or view.
ir::Value* VariableOf(ir::Value* value);

// The `assign` through which an update's new parameters reach the variable that the model reads:
// the updated one itself, or its 16-bit copy where that is a master (master-weights).
ir::Node* ParameterAssign(const ir::Node& update);

// Replaces the update by one with these inputs, because nodes cannot gain inputs.
Status ReplaceUpdate(ir::Graph& graph, ir::Node* update, const std::vector<ir::Value*>& inputs);

// For updates that look at whole tensors: the element of the bucket at which this rank's part
// begins, as a value before `update`.
StatusOr<ir::Value*> PartBegins(ir::Graph& graph, ir::Node* update);

// Places a gradient that is a pending sum before the update; otherwise it would be summed once for
// each of its readers.
Status SumGradientOnce(ir::Graph& graph, ir::Node* update);

// The nodes of the section that read the value, each once, in execution order.
std::vector<ir::Node*> UsersIn(const ir::Graph& graph, const ir::Section& section,
                               const ir::Value& value);

}  // namespace zg::zero
