// UpdateRules: which rule updates which parameter. A parameter belongs to the last group that names
// it; one that no group names is trained by the graph's optimizer.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/status.h"
#include "framework/ir/scope_pattern.h"
#include "framework/optim/optimizer.h"

namespace zg::optim {

struct GroupRule {
  std::string name;
  std::string patterns;
  std::vector<ScopePattern> parameters;
  UpdateRule rule;
};

struct UpdateRules {
  UpdateRule rule;                // of what no group names: group 0
  std::vector<GroupRule> groups;  // groups 1, 2, ...
  // Of parameters that joined training after its begin: the updates that there were before.
  std::map<std::string, int64_t> joined_after = {};

  int GroupOf(std::string_view parameter) const;
  const UpdateRule& RuleOf(int group) const { return group == 0 ? rule : groups[group - 1].rule; }
};

// Errors: those of MakeUpdateRule and of the patterns, with the group's name; two groups of a name;
// a factor that is not finite and >= 0.
StatusOr<UpdateRules> MakeUpdateRules(const Optimizer& optimizer,
                                      const std::vector<ParameterGroup>& groups);

}  // namespace zg::optim
