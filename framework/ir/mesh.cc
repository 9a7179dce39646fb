#include "framework/ir/mesh.h"

#include <fmt/format.h>

#include "framework/base/check.h"

namespace zg {
namespace {

bool IsOfDataRanks(const std::string& name) {
  return name == "data" || name == "shard" || name == "replica";
}

}  // namespace

std::string MeshAxis::ToString() const {
  return has_fixed_parts() ? fmt::format("{}={}/{}", name, size, parts)
                           : fmt::format("{}={}", name, size);
}

Status CheckParts(const MeshAxis& axis) {
  if (!axis.has_fixed_parts()) return Status::Ok();
  if (IsOfDataRanks(axis.name)) {
    return InvalidArgument(
        "{}: ranks along {} compute micro-batches of their own, whose bits do not depend on the "
        "number of ranks; expected {}={}",
        axis.ToString(), axis.name, axis.name, axis.size);
  }
  const int of_rank = axis.parts / axis.size;
  if (axis.parts % axis.size == 0 && (of_rank & (of_rank - 1)) == 0) return Status::Ok();
  return InvalidArgument(
      "{}: got {} parts for {} ranks, expected 1, 2, 4 or another power of two for each rank, which "
      "adds its parts pairwise",
      axis.ToString(), axis.parts, axis.size);
}

int Mesh::num_ranks() const {
  int product = 1;
  for (const MeshAxis& axis : axes_) product *= axis.size;
  return product;
}

int Mesh::Coordinate(int rank, int axis) const {
  for (int i = num_axes() - 1; i > axis; --i) rank /= axes_[i].size;
  return rank % axes_[axis].size;
}

bool Mesh::IsDataAxis(int axis) const { return IsOfDataRanks(axes_[axis].name); }

bool Mesh::ShardsOver(int axis) const { return IsDataAxis(axis) && axes_[axis].name != "replica"; }

std::vector<int> Mesh::DataAxes() const {
  std::vector<int> axes;
  for (int axis = 0; axis < num_axes(); ++axis) {
    if (IsDataAxis(axis) && axes_[axis].size > 1) axes.push_back(axis);
  }
  return axes;
}

std::vector<int> Mesh::ShardAxes() const {
  std::vector<int> axes;
  for (const int axis : DataAxes()) {
    if (ShardsOver(axis)) axes.push_back(axis);
  }
  return axes;
}

int Mesh::num_data_ranks() const {
  int product = 1;
  for (const int axis : DataAxes()) product *= axes_[axis].size;
  return product;
}

int Mesh::DataIndex(int rank) const {
  int index = 0;
  for (const int axis : DataAxes()) index = index * axes_[axis].size + Coordinate(rank, axis);
  return index;
}

std::vector<int> Mesh::RanksAlong(int rank, const std::vector<int>& axes) const {
  std::vector<int> ranks = {rank};
  for (const int axis : axes) {
    int stride = 1;
    for (int i = axis + 1; i < num_axes(); ++i) stride *= axes_[i].size;
    std::vector<int> next;
    for (const int begin : ranks) {
      const int first = begin - Coordinate(begin, axis) * stride;
      for (int i = 0; i < axes_[axis].size; ++i) next.push_back(first + i * stride);
    }
    ranks = std::move(next);
  }
  return ranks;
}

int Mesh::FindAxis(const std::string& name) const {
  for (int i = 0; i < num_axes(); ++i) {
    if (axes_[i].name == name) return i;
  }
  return -1;
}

std::string Mesh::ToString() const {
  std::vector<std::string> parts;
  for (const MeshAxis& axis : axes_) parts.push_back(axis.ToString());
  return fmt::format("{}", fmt::join(parts, ","));
}

NdSbp AllBroadcast(const Mesh& mesh) { return NdSbp(mesh.num_axes(), Sbp::B()); }

ShardPosition ShardPositionOf(const Mesh& mesh, const NdSbp& sbp, int rank, int dim) {
  ShardPosition position;
  for (int axis = 0; axis < mesh.num_axes(); ++axis) {
    const int size = mesh.axes()[axis].size;
    const int coordinate = mesh.Coordinate(rank, axis);
    if (!sbp.empty() && sbp[axis].is_split()) {
      if (sbp[axis].dim() != dim) continue;
      position.part = position.part * size + coordinate;
      position.num_parts *= size;
    } else {
      position.copy = position.copy * size + coordinate;
      position.num_copies *= size;
    }
  }
  return position;
}

Shape LocalShape(const Shape& logical, const NdSbp& sbp, const Mesh& mesh) {
  Shape local = logical;
  for (size_t axis = 0; axis < sbp.size(); ++axis) {
    if (!sbp[axis].is_split()) continue;
    const int64_t size = mesh.axes()[axis].size;
    const int64_t dim = local.dim(sbp[axis].dim());
    ZG_CHECK(dim % size == 0, "dim {} of {} does not divide by {} ranks", sbp[axis].dim(),
             logical.ToString(), size);
    local.set_dim(sbp[axis].dim(), dim / size);
  }
  return local;
}

}  // namespace zg
