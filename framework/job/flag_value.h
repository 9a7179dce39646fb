// The value of a flag, whatever its type: the numbers that it accepts, and its text form for the
// help, for reports and for ranks that compare their flags.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <variant>
#include <vector>

namespace zg {

// The numbers that a flag accepts.
struct NumberRange {
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
  bool without_min = false;  // `min` itself is not accepted

  bool Contains(double value) const;
  std::string ToString() const;  // ">= 1", "> 0", "from 0 to 3"; "" for all numbers
};
inline NumberRange at_least(double min) { return {min}; }
inline NumberRange above(double min) {
  return {min, std::numeric_limits<double>::infinity(), /*without_min=*/true};
}
inline NumberRange between(double min, double max) { return {min, max}; }

using FlagValue = std::variant<bool, int64_t, double, std::string, std::vector<std::string>>;
std::string FormatFlagValue(const FlagValue& value);

// A flag after parsing, given or not.
struct ResolvedFlag {
  std::string name;  // without the dashes
  FlagValue value;
};

// One "name = value" per line: equal texts mean equal flags.
std::string FlagsAsText(const std::vector<ResolvedFlag>& flags);

}  // namespace zg
