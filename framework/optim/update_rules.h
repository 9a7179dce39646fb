// UpdateRules: which rule updates which parameter. A parameter belongs to the last group that names
// it; the graph's optimizer trains parameters that no group names.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/status.h"
#include "framework/ir/scope_pattern.h"
#include "framework/optim/optimizer.h"

namespace zg::optim {

// How far a training is, between steps. The updates of a group are the steps that it did not skip.
struct PastSteps {
  int64_t steps = 0;
  std::map<std::string, int64_t, std::less<>> skipped = {};  // by the name of a group; others none

  int64_t UpdatesOf(std::string_view group) const;
};

struct GroupRule {
  std::string name;
  std::string patterns;
  std::vector<ScopePattern> parameters;
  UpdateRule rule;
};

struct UpdateRules {
  UpdateRule rule;                // of group 0: parameters that no group names
  std::vector<GroupRule> groups;  // groups 1, 2, ...
  // For parameters that joined their groups later: the number of the group's updates before.
  std::map<std::string, int64_t> joined_after = {};

  int GroupOf(std::string_view parameter) const;
  const UpdateRule& RuleOf(int group) const { return group == 0 ? rule : groups[group - 1].rule; }
  // The name of the parameter's group: "" is that of group 0.
  std::string GroupNameOf(std::string_view parameter) const;
  // The learning rate to show: that of the only group that a program updates, which is not among the idle
  // ones (Program::is_idle), else that of group 0.
  double ShownLr(const std::vector<bool>& is_idle) const;
  // As settings of a run that checkpoints keep: "optimizer", "group 1 'head'", ...
  std::map<std::string, std::string> Settings() const;
};

// Errors: those of MakeUpdateRule and of the patterns, with the group's name; two groups with the
// same name; a factor that is not finite and >= 0.
StatusOr<UpdateRules> MakeUpdateRules(const Optimizer& optimizer,
                                      const std::vector<ParameterGroup>& groups);

}  // namespace zg::optim
