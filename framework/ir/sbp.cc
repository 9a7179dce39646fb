#include "framework/ir/sbp.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>

namespace zg {
namespace {

std::optional<int> ParseNumber(std::string_view digits) {
  int number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || end != digits.data() + digits.size() || number < 0) return {};
  return number;
}

}  // namespace

std::string Sbp::ToString() const {
  switch (kind_) {
    case Kind::kBroadcast:
      return "B";
    case Kind::kSplit:
      return groups_ == 1 ? fmt::format("S({})", dim_) : fmt::format("S({}:{})", dim_, groups_);
    case Kind::kPartial:
      return "P";
  }
  return "?";
}

std::string ToString(const NdSbp& sbp) {
  std::vector<std::string> parts;
  for (const Sbp& one : sbp) parts.push_back(one.ToString());
  return fmt::format("{{{}}}", fmt::join(parts, ","));
}

StatusOr<Sbp> ParseSbp(std::string_view text) {
  if (text == "B") return Sbp::B();
  if (text == "P") return Sbp::P();
  if (text.size() >= 4 && text.substr(0, 2) == "S(" && text.back() == ')') {
    const std::string_view numbers = text.substr(2, text.size() - 3);
    const size_t colon = numbers.find(':');
    const std::optional<int> dim = ParseNumber(numbers.substr(0, colon));
    if (dim && colon == std::string_view::npos) return Sbp::S(*dim);
    if (dim) {
      const std::optional<int> groups = ParseNumber(numbers.substr(colon + 1));
      if (groups && *groups > 1) return Sbp::S(*dim, *groups);
    }
  }
  return InvalidArgument("placement '{}': expected B, P, S(dim) or S(dim:groups)", text);
}

StatusOr<NdSbp> ParseNdSbp(std::string_view text) {
  const auto bad = [&] {
    return InvalidArgument(
        "placement '{}': expected one of B, P, S(dim) per mesh axis in braces, as in {{S(0),B}}",
        text);
  };
  if (text.size() < 2 || text.front() != '{' || text.back() != '}') return bad();
  NdSbp result;
  std::string_view rest = text.substr(1, text.size() - 2);
  while (!rest.empty()) {
    const std::string_view item = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), item.size() + 1));
    const StatusOr<Sbp> sbp = ParseSbp(item);
    if (!sbp.ok()) return bad();
    result.push_back(*sbp);
  }
  return result;
}

}  // namespace zg
