#include "framework/runtime/local_elements.h"

namespace zg {
namespace {

// Whether the axis splits the tensor itself, and not only its storage.
bool SplitsTensor(const ir::StoredTensor& tensor, int axis) {
  return !tensor.split.empty() && tensor.split[axis].is_split();
}

// The elements of the rank's part of a tensor if the storage were not cut: a whole range, or runs.
LocalElements PartOfTensor(const Mesh& mesh, const ir::StoredTensor& tensor, int rank) {
  const Shape& shape = tensor.type.shape;
  LocalElements part;
  part.count = shape.num_elements();
  for (int axis = 0; axis < mesh.num_axes(); ++axis) {
    if (!SplitsTensor(tensor, axis)) continue;
    const Sbp split = tensor.split[axis];
    int64_t inner = 1;
    for (int dim = split.dim() + 1; dim < shape.num_dims(); ++dim) inner *= shape.dim(dim);
    const int size = mesh.axes()[axis].size;
    part.stride = shape.dim(split.dim()) / split.groups() * inner;
    part.run = part.stride / size;
    part.begin = part.run * mesh.Coordinate(rank, axis);
    part.count /= size;
  }
  return part;
}

}  // namespace

LocalElements LocalElementsOf(const ir::Graph& graph, const ir::StoredTensor& tensor, int rank) {
  const Mesh& mesh = graph.mesh();
  LocalElements elements = PartOfTensor(mesh, tensor, rank);
  // The other axes split the storage only along its flat dim, so a shard is a range of the part.
  const int64_t shard = StoredPositionOf(mesh, tensor, rank).shard;
  const int64_t shard_elements = graph.LocalType(*tensor.storage).shape.num_elements();
  const int64_t shard_begin = shard * shard_elements;
  const int64_t begin = std::max(shard_begin, tensor.offset_elements);
  const int64_t end =
      std::min(shard_begin + shard_elements, tensor.offset_elements + elements.count);
  if (end <= begin) return {};
  const int64_t skipped = begin - tensor.offset_elements;
  elements.begin = elements.ElementAt(skipped);
  elements.count = end - begin;
  elements.storage_offset = begin - shard_begin;
  if (!elements.is_range()) elements.cut = skipped % elements.run;
  return elements;
}

StoredPosition StoredPositionOf(const Mesh& mesh, const ir::StoredTensor& tensor, int rank) {
  StoredPosition position;
  const NdSbp& storage = tensor.storage->sbp;
  for (int axis = 0; axis < mesh.num_axes(); ++axis) {
    const auto along = [&](int64_t* index, int64_t* number) {
      *index = *index * mesh.axes()[axis].size + mesh.Coordinate(rank, axis);
      *number *= mesh.axes()[axis].size;
    };
    if (SplitsTensor(tensor, axis)) {
      along(&position.part, &position.num_parts);
    } else if (!storage.empty() && storage[axis].is_split()) {
      along(&position.shard, &position.num_shards);
    } else {
      along(&position.copy, &position.num_copies);
    }
  }
  return position;
}

bool IsWholeOnEveryRank(const ir::Graph& graph, const ir::StoredTensor& tensor) {
  return graph.LocalType(*tensor.storage) == tensor.storage->type;
}

}  // namespace zg
