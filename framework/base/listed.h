// Listed: names in a message, "a, b", or "none".
#pragma once

#include <fmt/ranges.h>

#include <string>
#include <vector>

namespace zg {

inline std::string Listed(const std::vector<std::string>& names) {
  return names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace zg
