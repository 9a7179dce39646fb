#include "framework/passes/placement_rule.h"

#include <fmt/format.h>

#include <sstream>

namespace zg {
namespace {

StatusOr<PlacementRule> ParseRule(std::istringstream& words) {
  PlacementRule rule;
  std::string placement, rest;
  words >> rule.pattern >> placement;
  const size_t equals = placement.find('=');
  if (equals == std::string::npos || equals == 0 || (words >> rest)) {
    return InvalidArgument(
        "expected PATTERN AXIS=PLACEMENT, such as 'blocks.*.mlp.up tensor=S(0)'");
  }
  rule.axis = placement.substr(0, equals);
  ZG_RETURN_IF_ERROR(ScopePattern::Parse(rule.pattern).status());
  ZG_ASSIGN_OR_RETURN(rule.sbp, ParseSbp(placement.substr(equals + 1)));
  if (rule.sbp.is_partial()) {
    return InvalidArgument(
        "got the placement P of a parameter, expected B, S(dim) or S(dim:groups)");
  }
  return rule;
}

}  // namespace

std::string PlacementRule::ToString() const {
  return fmt::format("{} {}={}", pattern, axis, sbp.ToString());
}

StatusOr<std::vector<PlacementRule>> ParsePlacementRules(std::string_view text) {
  std::vector<PlacementRule> rules;
  std::istringstream lines{std::string(text)};
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    line = line.substr(0, line.find('#'));
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    std::istringstream words(line);
    StatusOr<PlacementRule> rule = ParseRule(words);
    if (!rule.ok()) return rule.status().WithContext(fmt::format("line {}: '{}'", number, line));
    rules.push_back(std::move(*rule));
  }
  return rules;
}

}  // namespace zg
