// CheckpointSlices: the elements of a checkpoint that each rank writes. A rank writes the elements
// that it holds; ranks that hold the same elements write equal parts of them. Tensors that are
// whole on every rank are laid end to end and cut into equal parts. Every element is written once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "framework/ir/graph.h"
#include "framework/runtime/local_elements.h"
#include "framework/state/tensor_state.h"

namespace zg {

struct CheckpointSlice {
  size_t index = 0;        // of the tensor in the list
  int64_t local = 0;       // index of the first element among the rank's elements of the tensor
  LocalElements elements;  // the elements of the slice

  int64_t bytes() const { return elements.count * static_cast<int64_t>(sizeof(float)); }
};

// The slices of one rank. `tensors` are TensorsByName of a role; no slice is empty.
std::vector<CheckpointSlice> CheckpointSlicesOf(const ir::Graph& graph,
                                                const std::vector<const ir::StoredTensor*>& tensors,
                                                int rank);

// The bytes of a rank's slices of all roles, and so of their copy.
int64_t CheckpointBytesOf(const ir::Graph& graph, int rank);

// The largest CheckpointBytesOf of all ranks; fast even for very many ranks.
int64_t MostCheckpointBytes(const ir::Graph& graph);

}  // namespace zg
