#include "framework/runtime/checkpoint_slices.h"

#include <algorithm>

#include "framework/runtime/local_elements.h"

namespace zg {

std::vector<CheckpointSlice> CheckpointSlicesOf(const Graph& graph,
                                                const std::vector<const StoredTensor*>& tensors,
                                                int rank) {
  const int64_t num_ranks = graph.mesh().num_ranks();
  int64_t whole_elements = 0;
  for (const StoredTensor* tensor : tensors) {
    if (IsWholeOnEveryRank(graph, *tensor)) whole_elements += tensor->type.shape.num_elements();
  }
  const int64_t part_elements = (whole_elements + num_ranks - 1) / num_ranks;
  std::vector<CheckpointSlice> slices;
  int64_t whole_begin = 0;  // of the next tensor, among those that are whole
  for (size_t i = 0; i < tensors.size(); ++i) {
    const LocalElements elements = LocalElementsOf(graph, *tensors[i], rank);
    CheckpointSlice slice = {i, elements.begin, elements.count};
    if (IsWholeOnEveryRank(graph, *tensors[i])) {
      const int64_t begin = std::max(rank * part_elements, whole_begin);
      whole_begin += elements.count;
      const int64_t end = std::min((rank + 1) * part_elements, whole_begin);
      slice.begin = begin - (whole_begin - elements.count);
      slice.count = end - begin;
    }
    if (slice.count > 0) slices.push_back(slice);
  }
  return slices;
}

int64_t CheckpointBytesOf(const Graph& graph, int rank) {
  int64_t bytes = 0;
  for (const TensorRole role : {TensorRole::kParameter, TensorRole::kOptimizerState}) {
    for (const CheckpointSlice& slice :
         CheckpointSlicesOf(graph, TensorsByName(graph, role), rank)) {
      bytes += slice.bytes();
    }
  }
  return bytes;
}

}  // namespace zg
