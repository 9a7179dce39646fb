#include "framework/runtime/checkpoint_slices.h"

#include <algorithm>

namespace zg {
namespace {

constexpr TensorRole kRoles[] = {TensorRole::kParameter, TensorRole::kOptimizerState};

// Of the ranks [first, last), the most.
int64_t MostBytes(const Graph& graph, int first, int last) {
  std::vector<int64_t> bytes(last - first);
  for (const TensorRole role : kRoles) {
    const std::vector<const StoredTensor*> tensors = TensorsByName(graph, role);
    for (int rank = first; rank < last; ++rank) {
      for (const CheckpointSlice& slice : CheckpointSlicesOf(graph, tensors, rank)) {
        bytes[rank - first] += slice.bytes();
      }
    }
  }
  return *std::max_element(bytes.begin(), bytes.end());
}

}  // namespace

std::vector<CheckpointSlice> CheckpointSlicesOf(const Graph& graph,
                                                const std::vector<const StoredTensor*>& tensors,
                                                int rank) {
  const size_t num_ranks = graph.mesh().num_ranks();
  std::vector<CheckpointSlice> slices;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const LocalElements elements = LocalElementsOf(graph, *tensors[i], rank);
    const bool is_another_ranks_turn =
        IsWholeOnEveryRank(graph, *tensors[i]) && i % num_ranks != static_cast<size_t>(rank);
    if (elements.count == 0 || is_another_ranks_turn) continue;
    slices.push_back({tensors[i], i, elements});
  }
  return slices;
}

int64_t CheckpointBytesOf(const Graph& graph, int rank) {
  return MostBytes(graph, rank, rank + 1);
}

int64_t MostCheckpointBytes(const Graph& graph) {
  // Later ranks have no turn, and of what is split no more than the first.
  const int num_tensors = static_cast<int>(graph.tensors().size());
  return MostBytes(graph, 0, std::clamp(num_tensors, 1, graph.mesh().num_ranks()));
}

}  // namespace zg
