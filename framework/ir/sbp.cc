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

StatusOr<Sbp> ParseSbp(std::string_view text) {
  if (text == "B") return Sbp::B();
  if (text == "P") return Sbp::P();
  if (text.size() >= 4 && text.substr(0, 2) == "S(" && text.back() == ')') {
    const std::string_view digits = text.substr(2, text.size() - 3);
    int dim = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), dim);
    if (error == std::errc() && end == digits.data() + digits.size() && dim >= 0)
      return Sbp::S(dim);
  }
  return InvalidArgument("placement '{}': expected B, P or S(dim)", text);
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
