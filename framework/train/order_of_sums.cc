#include "framework/train/order_of_sums.h"

#include <fmt/format.h>

#include "framework/io/sha256.h"

namespace zg {

std::string OrderOfSums(const Program& program) {
  const Mesh& mesh = program.graph.mesh();
  std::string rules;
  for (const PlacementRule& rule : program.options.placement) rules += rule.ToString() + "\n";
  const std::string digest = Sha256Hex(rules.data(), rules.size()).substr(0, 8);
  std::string order;
  for (int axis = 0; axis < mesh.num_axes(); ++axis) {
    const MeshAxis& along = mesh.axes()[axis];
    if (mesh.IsDataAxis(axis) || along.num_parts() == 1) continue;
    order += fmt::format(", {} in {} parts by the rules {}", along.name, along.num_parts(), digest);
  }
  const bool sums_once = program.options.reduce_every == ReduceEvery::kStep;
  if (sums_once && mesh.num_data_ranks() > 1) {
    order += fmt::format(", gradients of {} ranks", mesh.num_data_ranks());
  }
  return order;
}

}  // namespace zg
