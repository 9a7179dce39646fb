#include "framework/base/byte_size.h"

#include <charconv>
#include <cmath>
#include <string_view>

namespace zg {
namespace {

constexpr std::string_view kUnits = "KMGT";

// The factor that the letters after the number stand for; 0 for unknown letters.
double Multiplier(std::string_view suffix) {
  if (suffix.empty() || suffix == "B") return 1;
  const size_t unit = kUnits.find(suffix[0]);
  if (unit == std::string_view::npos) return 0;
  const std::string_view rest = suffix.substr(1);
  const double power = static_cast<double>(unit + 1);
  if (rest.empty() || rest == "B") return std::pow(1000, power);
  return rest == "iB" ? std::pow(1024, power) : 0;
}

}  // namespace

StatusOr<int64_t> ParseByteSize(std::string_view who, std::string_view text) {
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [parsed_to, error] = std::from_chars(text.data(), end, number);
  const double bytes =
      number * Multiplier(std::string_view(parsed_to, static_cast<size_t>(end - parsed_to)));
  constexpr double kMaxBytes = 1e18;
  if (error == std::errc() && bytes >= 1 && bytes <= kMaxBytes) return std::llround(bytes);
  return InvalidArgument("{}: got '{}', expected bytes such as 500M, 8G or 8GiB", who, text);
}

}  // namespace zg
