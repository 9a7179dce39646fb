#include "framework/state/checkpoint_slices.h"

#include <algorithm>

namespace zg {
namespace {

constexpr TensorRole kRoles[] = {TensorRole::kParameter, TensorRole::kOptimizerState};

// The number of elements that each rank, except the last ones, writes of tensors that are whole on
// every rank.
int64_t PartElements(const ir::Graph& graph, const std::vector<const ir::StoredTensor*>& tensors) {
  const int64_t num_ranks = graph.mesh().num_ranks();
  int64_t whole_elements = 0;
  for (const ir::StoredTensor* tensor : tensors) {
    if (IsWholeOnEveryRank(graph, *tensor)) whole_elements += tensor->type.shape.num_elements();
  }
  return (whole_elements + num_ranks - 1) / num_ranks;
}

// The elements that the copy-th rank writes out of `count` that several ranks hold: an equal part,
// except for the last ones.
struct CopyPart {
  int64_t begin = 0;
  int64_t count = 0;
};
CopyPart PartOfCopy(int64_t count, int64_t copy, int64_t num_copies) {
  const int64_t part = (count + num_copies - 1) / num_copies;
  const int64_t begin = std::min(copy * part, count);
  return {begin, std::min(part, count - begin)};
}

// The ranks that hold each shard of each part of a tensor with this placement, copy by copy.
struct Holders {
  NdSbp storage;
  NdSbp split;
  int64_t num_shards = 0;
  std::vector<std::vector<int>> ranks;  // part * num_shards + shard

  bool Fit(const ir::StoredTensor& tensor) const {
    return num_shards > 0 && tensor.storage->sbp == storage && tensor.split == split;
  }
};

Holders HoldersOf(const Mesh& mesh, const ir::StoredTensor& tensor) {
  Holders holders;
  holders.storage = tensor.storage->sbp;
  holders.split = tensor.split;
  for (int rank = 0; rank < mesh.num_ranks(); ++rank) {
    const StoredPosition position = StoredPositionOf(mesh, tensor, rank);
    holders.num_shards = position.num_shards;
    holders.ranks.resize(position.num_parts * position.num_shards);
    holders.ranks[position.part * position.num_shards + position.shard].push_back(rank);
  }
  return holders;
}

// Adds the elements of a split tensor to those of the ranks that hold and write them.
void AddShards(const ir::Graph& graph, const ir::StoredTensor& tensor, const Holders& holders,
               std::vector<int64_t>* elements) {
  const int64_t shard_elements = graph.LocalType(*tensor.storage).shape.num_elements();
  const int64_t num_parts = static_cast<int64_t>(holders.ranks.size()) / holders.num_shards;
  const int64_t end = tensor.offset_elements + tensor.type.shape.num_elements() / num_parts;
  for (int64_t begin = tensor.offset_elements; begin < end;) {
    const int64_t shard = begin / shard_elements;
    const int64_t shard_end = std::min(end, (shard + 1) * shard_elements);
    for (int64_t part = 0; part < num_parts; ++part) {
      const std::vector<int>& ranks = holders.ranks[part * holders.num_shards + shard];
      for (size_t copy = 0; copy < ranks.size(); ++copy) {
        (*elements)[ranks[copy]] += PartOfCopy(shard_end - begin, copy, ranks.size()).count;
      }
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
  int64_t whole_begin = 0;  // of the next tensor, among the whole ones
  for (size_t i = 0; i < tensors.size(); ++i) {
    const LocalElements elements = LocalElementsOf(graph, *tensors[i], rank);
    CopyPart mine;  // of the elements
    if (IsWholeOnEveryRank(graph, *tensors[i])) {
      const int64_t begin = std::max(rank * part_elements, whole_begin);
      whole_begin += elements.count;
      const int64_t end = std::min((rank + 1) * part_elements, whole_begin);
      mine = {begin - (whole_begin - elements.count), end - begin};
    } else {
      const StoredPosition position = StoredPositionOf(graph.mesh(), *tensors[i], rank);
      mine = PartOfCopy(elements.count, position.copy, position.num_copies);
    }
    if (mine.count > 0) slices.push_back({i, mine.begin, elements.Slice(mine.begin, mine.count)});
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
  Holders holders;  // of the last tensor's placement, which most tensors share
  for (const TensorRole role : kRoles) {
    const std::vector<const ir::StoredTensor*> tensors = TensorsByName(graph, role);
    int64_t whole_elements = 0;
    for (const ir::StoredTensor* tensor : tensors) {
      if (IsWholeOnEveryRank(graph, *tensor)) {
        whole_elements += tensor->type.shape.num_elements();
      } else {
        if (!holders.Fit(*tensor)) holders = HoldersOf(graph.mesh(), *tensor);
        AddShards(graph, *tensor, holders, &elements);
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
