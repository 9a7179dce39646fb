// CheckpointSlices: what each rank writes of a checkpoint. A rank writes the elements that it
// holds, and if several ranks hold them, an equal part; of tensors that are whole on every rank,
// laid end to end, each writes an equal part. Every element is written once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "framework/ir/graph.h"
#include "framework/state/tensor_state.h"

namespace zg {

struct CheckpointSlice {
  size_t index = 0;   // of the tensor in the list
  int64_t begin = 0;  // element of the tensor
  int64_t count = 0;

  int64_t bytes() const { return count * static_cast<int64_t>(sizeof(float)); }
};

// Those of one rank of `tensors`, which are TensorsByName of a role; none is empty.
std::vector<CheckpointSlice> CheckpointSlicesOf(const ir::Graph& graph,
                                                const std::vector<const ir::StoredTensor*>& tensors,
                                                int rank);

// The bytes of a rank's slices of all roles: what a copy of them takes.
int64_t CheckpointBytesOf(const ir::Graph& graph, int rank);

// Those of the rank that has most; also for graphs of very many ranks.
int64_t MostCheckpointBytes(const ir::Graph& graph);

}  // namespace zg
