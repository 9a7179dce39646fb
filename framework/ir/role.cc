#include "framework/ir/role.h"

#include <fmt/format.h>

namespace zg {

StatusOr<Role> ParseRole(std::string_view name) {
  if (const auto role = ParseEnum<Role>(name)) return *role;
  return InvalidArgument("unknown role '{}': expected one of {}", name,
                         fmt::join(EnumNames<Role>::kNames, ", "));
}

}  // namespace zg
