#include "framework/optim/update_rules.h"

#include <algorithm>

#include "framework/ir/quote.h"

namespace zg::optim {
namespace {

Status CheckName(const std::string& name) {
  const bool is_legal = !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return c != '.' && IsNameCharacter(c);
  });
  if (is_legal) return Status::Ok();
  return InvalidArgument("parameter group '{}': expected a name of letters, digits and '_'", name);
}

StatusOr<GroupRule> MakeGroupRule(const Optimizer& optimizer, const ParameterGroup& group) {
  GroupRule made;
  made.name = group.name;
  made.patterns = group.parameters;
  ZG_ASSIGN_OR_RETURN(made.parameters, ParseScopePatterns(group.parameters));
  ZG_ASSIGN_OR_RETURN(made.rule, MakeUpdateRule(group.optimizer.value_or(optimizer)));
  ZG_RETURN_IF_ERROR(CheckHyperparameters("the group", {{"lr_factor", group.lr_factor}}));
  made.rule.ScaleLr(group.lr_factor);
  return made;
}

}  // namespace

int64_t PastSteps::UpdatesOf(std::string_view group) const {
  const auto found = skipped.find(group);
  return found == skipped.end() ? steps : steps - found->second;
}

int UpdateRules::GroupOf(std::string_view parameter) const {
  for (int group = static_cast<int>(groups.size()); group > 0; --group) {
    if (MatchesAny(groups[group - 1].parameters, parameter)) return group;
  }
  return 0;
}

std::string UpdateRules::GroupNameOf(std::string_view parameter) const {
  const int group = GroupOf(parameter);
  return group == 0 ? "" : groups[group - 1].name;
}

double UpdateRules::ShownLr(const std::vector<bool>& is_idle) const {
  const auto shown = std::find(is_idle.begin(), is_idle.end(), false);
  const bool is_only = std::count(is_idle.begin(), is_idle.end(), false) == 1;
  return RuleOf(is_only ? static_cast<int>(shown - is_idle.begin()) : 0).attributes.Float("lr");
}

std::map<std::string, std::string> UpdateRules::Settings() const {
  std::map<std::string, std::string> settings = {{"optimizer", ToString(rule)}};
  for (size_t i = 0; i < groups.size(); ++i) {  // the order decides who has a parameter
    settings[fmt::format("group {} '{}'", i + 1, groups[i].name)] =
        fmt::format("{}: {}", groups[i].patterns, ToString(groups[i].rule));
  }
  return settings;
}

StatusOr<UpdateRules> MakeUpdateRules(const Optimizer& optimizer,
                                      const std::vector<ParameterGroup>& groups) {
  UpdateRules rules;
  ZG_ASSIGN_OR_RETURN(rules.rule, MakeUpdateRule(optimizer));
  for (const ParameterGroup& group : groups) {
    ZG_RETURN_IF_ERROR(CheckName(group.name));
    for (const GroupRule& other : rules.groups) {
      if (other.name != group.name) continue;
      return InvalidArgument("two parameter groups are named '{}'", group.name);
    }
    StatusOr<GroupRule> made = MakeGroupRule(optimizer, group);
    if (!made.ok()) {
      return made.status().WithContext(fmt::format("parameter group '{}'", group.name));
    }
    rules.groups.push_back(*std::move(made));
  }
  return rules;
}

}  // namespace zg::optim
