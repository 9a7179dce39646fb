#include "framework/passes/stage_rule.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "framework/ir/scope_pattern.h"
#include "framework/passes/zero_stage.h"

namespace zg {
namespace {

std::optional<int> ParseStage(std::string_view text) {
  if (text.size() != 1 || text[0] < '0' || text[0] > '0' + kLastStage) return std::nullopt;
  return text[0] - '0';
}

Status NotStages(std::string_view text) {
  return InvalidArgument(
      "got '{}', expected a whole number from 0 to {}, or stages by name, such as 2,blocks.*=3",
      text, kLastStage);
}

}  // namespace

std::string StageRule::ToString() const { return fmt::format("{}={}", pattern, stage); }

StatusOr<Stages> ParseStages(std::string_view text) {
  Stages stages;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view item = text.substr(begin, end - begin);
    const size_t equals = item.find('=');
    const std::optional<int> stage =
        ParseStage(equals == std::string_view::npos ? item : item.substr(equals + 1));
    if (!stage.has_value()) return NotStages(text);
    if (equals == std::string_view::npos) {
      if (begin != 0) return NotStages(text);  // the stage of the rest comes first
      stages.otherwise = *stage;
    } else {
      stages.rules.push_back({std::string(item.substr(0, equals)), *stage});
      ZG_RETURN_IF_ERROR(CheckStageRule(stages.rules.back()));
    }
    begin = end + 1;
  }
  return stages;
}

std::string StagesText(int otherwise, const std::vector<StageRule>& rules) {
  std::string text = fmt::to_string(otherwise);
  for (const StageRule& rule : rules) text += "," + rule.ToString();
  return text;
}

Status CheckStageRule(const StageRule& rule) {
  ZG_RETURN_IF_ERROR(ScopePattern::Parse(rule.pattern).status());
  if (rule.stage >= 0 && rule.stage <= kLastStage) return Status::Ok();
  return InvalidArgument("{}: got stage {}, expected 0, 1, 2 or 3", rule.pattern, rule.stage);
}

}  // namespace zg
