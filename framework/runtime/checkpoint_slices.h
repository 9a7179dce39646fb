// CheckpointSlices: what each rank writes of a checkpoint. A rank writes the elements that it
// holds; tensors that are whole on every rank take turns, so that all ranks have something to
// write. Every element is written once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "framework/ir/graph.h"
#include "framework/runtime/local_elements.h"
#include "framework/runtime/tensor_state.h"

namespace zg {

struct CheckpointSlice {
  const StoredTensor* tensor = nullptr;
  size_t index = 0;  // of the tensor in the list
  LocalElements elements;

  int64_t bytes() const { return elements.count * static_cast<int64_t>(sizeof(float)); }
};

// Those of one rank of `tensors`, which are TensorsByName of a role; none is empty.
std::vector<CheckpointSlice> CheckpointSlicesOf(const Graph& graph,
                                                const std::vector<const StoredTensor*>& tensors,
                                                int rank);

// The bytes of a rank's slices of all roles: what a copy of them takes.
int64_t CheckpointBytesOf(const Graph& graph, int rank);

// The same of the rank that writes most.
int64_t MostCheckpointBytes(const Graph& graph);

}  // namespace zg
