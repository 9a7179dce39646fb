#include "framework/ir/check_mesh.h"

#include <cctype>
#include <set>
#include <string>

namespace zg {
namespace {

constexpr int64_t kMaxRanks = 1 << 20;

bool IsAxisName(const std::string& name) {
  for (const char c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '_') return false;
  }
  return !name.empty();
}

}  // namespace

Status CheckMesh(const Mesh& mesh) {
  std::set<std::string> names;
  int64_t num_ranks = 1;
  for (const MeshAxis& axis : mesh.axes()) {
    const auto error = [&](const char* expected) {
      return InvalidArgument("mesh: got the axis '{}', expected {}", axis.ToString(), expected);
    };
    if (!IsAxisName(axis.name)) return error("a name of letters, digits and '_'");
    if (!names.insert(axis.name).second)
      return error("a name for each axis, which this one shares");
    if (axis.size < 1) return error("at least 1 rank along it");
    if (axis.parts < 0) return error("a number of parts, or 0");
    num_ranks *= axis.size;
    if (num_ranks > kMaxRanks) return error("at most 2^20 ranks together with the axes before it");
    ZG_RETURN_IF_ERROR(CheckParts(axis).WithContext("mesh"));
  }
  return Status::Ok();
}

}  // namespace zg
