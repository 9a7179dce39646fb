#include "framework/ir/sbp.h"

#include <fmt/format.h>

#include <charconv>

namespace zg {

std::string Sbp::ToString() const {
  switch (kind_) {
    case Kind::kBroadcast:
      return "B";
    case Kind::kSplit:
      return fmt::format("S({})", dim_);
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
    if (item == "B") {
      result.push_back(Sbp::B());
    } else if (item == "P") {
      result.push_back(Sbp::P());
    } else if (item.size() >= 4 && item.substr(0, 2) == "S(" && item.back() == ')') {
      const std::string_view digits = item.substr(2, item.size() - 3);
      int dim = 0;
      const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), dim);
      if (error != std::errc() || end != digits.data() + digits.size() || dim < 0) return bad();
      result.push_back(Sbp::S(dim));
    } else {
      return bad();
    }
  }
  return result;
}

}  // namespace zg
