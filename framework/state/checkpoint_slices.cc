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

// Of `count` elements that several ranks hold, those that the copy-th of them writes: an equal
// part, but for the last ones.
struct CopyPart {
  int64_t begin = 0;
  int64_t count = 0;
};
CopyPart PartOfCopy(int64_t count, int64_t copy, int64_t num_copies) {
  const int64_t part = (count + num_copies - 1) / num_copies;
  const int64_t begin = std::min(copy * part, count);
  return {begin, std::min(part, count - begin)};
}

// The ranks that hold each part of a value with this placement, copy by copy.
using RanksOfParts = std::vector<std::vector<int>>;
RanksOfParts FindRanksOfParts(const Mesh& mesh, const NdSbp& sbp) {
  RanksOfParts ranks_of_parts;
  for (int rank = 0; rank < mesh.num_ranks(); ++rank) {
    const ShardPosition position = ShardPositionOf(mesh, sbp, rank);
    ranks_of_parts.resize(position.num_parts);
    ranks_of_parts[position.part].push_back(rank);
  }
  return ranks_of_parts;
}

// Adds the elements of a split tensor to those of the ranks that hold and write them.
void AddShards(const ir::Graph& graph, const ir::StoredTensor& tensor,
               const RanksOfParts& ranks_of_parts, std::vector<int64_t>* elements) {
  const int64_t shard_elements = graph.LocalType(*tensor.storage).shape.num_elements();
  const int64_t end = tensor.offset_elements + tensor.type.shape.num_elements();
  for (int64_t begin = tensor.offset_elements; begin < end;) {
    const int64_t part = begin / shard_elements;
    const int64_t shard_end = std::min(end, (part + 1) * shard_elements);
    const std::vector<int>& ranks = ranks_of_parts[part];
    for (size_t copy = 0; copy < ranks.size(); ++copy) {
      (*elements)[ranks[copy]] += PartOfCopy(shard_end - begin, copy, ranks.size()).count;
    }
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
    } else {
      const ShardPosition position = ShardPositionOf(graph.mesh(), tensors[i]->storage->sbp, rank);
      const CopyPart part = PartOfCopy(elements.count, position.copy, position.num_copies);
      slice.begin += part.begin;
      slice.count = part.count;
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
  RanksOfParts ranks_of_parts;  // of the last tensor's placement, which most have
  NdSbp sbp_of_parts;
  for (const TensorRole role : kRoles) {
    const std::vector<const ir::StoredTensor*> tensors = TensorsByName(graph, role);
    int64_t whole_elements = 0;
    for (const ir::StoredTensor* tensor : tensors) {
      if (IsWholeOnEveryRank(graph, *tensor)) {
        whole_elements += tensor->type.shape.num_elements();
      } else {
        const NdSbp& sbp = tensor->storage->sbp;
        if (ranks_of_parts.empty() || sbp != sbp_of_parts) {
          ranks_of_parts = FindRanksOfParts(graph.mesh(), sbp);
          sbp_of_parts = sbp;
        }
        AddShards(graph, *tensor, ranks_of_parts, &elements);
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
