#include "framework/passes/placement_rule.h"

#include <fmt/format.h>

#include <sstream>

namespace zg {
namespace {

StatusOr<PlacementRule> ParseRule(std::istringstream& words) {
  PlacementRule rule;
  std::string placement, rest;
  words >> rule.pattern >> placement;
  if (placement == "->") {
    rule.of = PlacementRule::Of::kResults;
    placement.clear();
    words >> placement;
  }
  const size_t equals = placement.find('=');
  if (equals == std::string::npos || equals == 0 || (words >> rest)) {
    return InvalidArgument(
        "expected PATTERN AXIS=PLACEMENT for parameters, such as 'blocks.*.mlp.up tensor=S(0)', or "
        "PATTERN -> AXIS=PLACEMENT for what modules give");
  }
  rule.axis = placement.substr(0, equals);
  ZG_RETURN_IF_ERROR(ScopePattern::Parse(rule.pattern).status());
  ZG_ASSIGN_OR_RETURN(rule.sbp, ParseSbp(placement.substr(equals + 1)));
  if (rule.sbp.is_partial()) {
    return InvalidArgument("got the placement P, expected B, S(dim) or S(dim:groups)");
  }
  if (rule.of == PlacementRule::Of::kResults && rule.sbp.is_split() && rule.sbp.groups() > 1) {
    return InvalidArgument("got {} of what modules give, expected B or S(dim)",
                           rule.sbp.ToString());
  }
  return rule;
}

}  // namespace

std::string PlacementRule::ToString() const {
  return fmt::format("{}{} {}={}", pattern, of == Of::kResults ? " ->" : "", axis, sbp.ToString());
}

StatusOr<int> SharedAxisOf(const PlacementRule& rule, const Mesh& mesh) {
  const std::string who = fmt::format("placement rule '{}'", rule.ToString());
  if (rule.sbp.is_partial() || (rule.sbp.is_split() && rule.sbp.dim() < 0)) {
    return InvalidArgument("{}: expected the placement B, S(dim) or S(dim:groups), dim from 0 on",
                           who);
  }
  const int axis = mesh.FindAxis(rule.axis);
  if (axis < 0) {
    return InvalidArgument(
        "{}: mesh({}) has no axis {}; give the mesh one, of one rank if nothing is to be split",
        who, mesh.ToString(), rule.axis);
  }
  if (!mesh.IsDataAxis(axis)) return axis;
  return InvalidArgument(
      "{}: ranks along {} compute different micro-batches, and the stage of ZeRO says how parameters "
      "lie along it; expected another axis, such as tensor",
      who, rule.axis);
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
