#include "framework/job/flag_value.h"

#include <fmt/format.h>

#include <cmath>
#include <string_view>
#include <type_traits>

namespace zg {

bool NumberRange::Contains(double value) const {
  return std::isfinite(value) && value <= max && (without_min ? value > min : value >= min);
}

std::string NumberRange::ToString() const {
  const bool has_min = std::isfinite(min);
  const bool has_max = std::isfinite(max);
  const std::string_view at_least = without_min ? ">" : ">=";
  if (has_min && has_max && without_min) return fmt::format("> {} and <= {}", min, max);
  if (has_min && has_max) return fmt::format("from {} to {}", min, max);
  if (has_min) return fmt::format("{} {}", at_least, min);
  if (has_max) return fmt::format("<= {}", max);
  return "";
}

std::string FormatFlagValue(const FlagValue& value) {
  return std::visit(
      [](const auto& held) {
        if constexpr (std::is_same_v<std::decay_t<decltype(held)>, std::vector<std::string>>) {
          return fmt::format("{}", fmt::join(held, " "));
        } else {
          return fmt::format("{}", held);
        }
      },
      value);
}

std::string FlagsAsText(const std::vector<ResolvedFlag>& flags) {
  std::string text;
  for (const ResolvedFlag& flag : flags) {
    text += fmt::format("{} = {}\n", flag.name, FormatFlagValue(flag.value));
  }
  return text;
}

}  // namespace zg
