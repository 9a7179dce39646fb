#include "framework/runtime/local_elements.h"

#include <algorithm>

namespace zg {

LocalElements LocalElementsOf(const ir::Graph& graph, const ir::StoredTensor& tensor, int rank) {
  // Storage is split along its first dim only, so a shard is a range of elements.
  const int64_t local_elements = graph.LocalType(*tensor.storage).shape.num_elements();
  const int64_t shard_begin =
      ShardPositionOf(graph.mesh(), tensor.storage->sbp, rank).part * local_elements;
  const int64_t begin = std::max(shard_begin, tensor.offset_elements);
  const int64_t end = std::min(shard_begin + local_elements,
                               tensor.offset_elements + tensor.type.shape.num_elements());
  if (end <= begin) return {};
  return {begin - tensor.offset_elements, end - begin, begin - shard_begin};
}

bool IsWholeOnEveryRank(const ir::Graph& graph, const ir::StoredTensor& tensor) {
  return graph.LocalType(*tensor.storage) == tensor.storage->type;
}

}  // namespace zg
