#include "framework/state/checkpoint_slices.h"

#include <algorithm>

#include "framework/runtime/local_elements.h"

namespace zg {
namespace {

constexpr TensorRole kRoles[] = {TensorRole::kParameter, TensorRole::kOptimizerState};

// How much of the tensors that are whole on every rank each rank writes, but for the last ones.
int64_t PartElements(const ir::Graph& graph, const std::vector<const ir::StoredTensor*>& tensors) {
  const int64_t num_ranks = graph.mesh().num_ranks();
  int64_t whole_elements = 0;
  for (const ir::StoredTensor* tensor : tensors) {
    if (IsWholeOnEveryRank(graph, *tensor)) whole_elements += tensor->type.shape.num_elements();
  }
  return (whole_elements + num_ranks - 1) / num_ranks;
}

// Adds the elements of a split tensor to those of the ranks that hold them.
void AddShards(const ir::Graph& graph, const ir::StoredTensor& tensor,
               std::vector<int64_t>* elements) {
  const int64_t shard_elements = graph.LocalType(*tensor.storage).shape.num_elements();
  const int64_t end = tensor.offset_elements + tensor.type.shape.num_elements();
  for (int64_t begin = tensor.offset_elements; begin < end;) {
    const int64_t rank = begin / shard_elements;
    const int64_t shard_end = std::min(end, (rank + 1) * shard_elements);
    (*elements)[rank] += shard_end - begin;
    begin = shard_end;
  }
}

}  // namespace

std::vector<CheckpointSlice> CheckpointSlicesOf(const ir::Graph& graph,
                                                const std::vector<const ir::StoredTensor*>& tensors,
                                                int rank) {
  const int64_t part_elements = PartElements(graph, tensors);
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

int64_t CheckpointBytesOf(const ir::Graph& graph, int rank) {
  int64_t bytes = 0;
  for (const TensorRole role : kRoles) {
    for (const CheckpointSlice& slice :
         CheckpointSlicesOf(graph, TensorsByName(graph, role), rank)) {
      bytes += slice.bytes();
    }
  }
  return bytes;
}

int64_t MostCheckpointBytes(const ir::Graph& graph) {
  std::vector<int64_t> elements(graph.mesh().num_ranks());
  for (const TensorRole role : kRoles) {
    const std::vector<const ir::StoredTensor*> tensors = TensorsByName(graph, role);
    int64_t whole_elements = 0;
    for (const ir::StoredTensor* tensor : tensors) {
      if (IsWholeOnEveryRank(graph, *tensor)) {
        whole_elements += tensor->type.shape.num_elements();
      } else {
        AddShards(graph, *tensor, &elements);
      }
    }
    const int64_t part_elements = PartElements(graph, tensors);
    for (int64_t& of_rank : elements) {
      const int64_t part = std::min(part_elements, whole_elements);
      of_rank += part;
      whole_elements -= part;
    }
  }
  return *std::max_element(elements.begin(), elements.end()) * static_cast<int64_t>(sizeof(float));
}

}  // namespace zg
