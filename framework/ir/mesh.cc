#include "framework/ir/mesh.h"

#include <fmt/format.h>

#include "framework/base/check.h"

namespace zg {

int Mesh::num_ranks() const {
  int product = 1;
  for (const MeshAxis& axis : axes_) product *= axis.size;
  return product;
}

int Mesh::Coordinate(int rank, int axis) const {
  for (int i = num_axes() - 1; i > axis; --i) rank /= axes_[i].size;
  return rank % axes_[axis].size;
}

int Mesh::FindAxis(const std::string& name) const {
  for (int i = 0; i < num_axes(); ++i) {
    if (axes_[i].name == name) return i;
  }
  return -1;
}

std::string Mesh::ToString() const {
  std::vector<std::string> parts;
  for (const MeshAxis& axis : axes_) parts.push_back(fmt::format("{}={}", axis.name, axis.size));
  return fmt::format("{}", fmt::join(parts, ","));
}

NdSbp AllBroadcast(const Mesh& mesh) { return NdSbp(mesh.num_axes(), Sbp::B()); }

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
