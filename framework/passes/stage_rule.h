// StageRule: the stage of ZeRO for parameters of a name, their gradients and optimizer states, where
// it is another than that of the rest. In text, as on a command line, after the stage of the rest:
//
//   2,blocks.*=3,token_embedding=1
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "framework/base/status.h"

namespace zg {

struct StageRule {
  std::string pattern;  // of parameters or the modules that have them (ir/scope_pattern.h)
  int stage = 0;

  std::string ToString() const;  // "blocks.*=3"
};

// Of all parameters.
struct Stages {
  int otherwise = 0;  // of what no rule names
  std::vector<StageRule> rules;
};

// A number is a stage for all; without one, what no rule names has stage 0. Errors: something else
// than a number and rules; a stage that is not 0 to 3; a malformed pattern.
StatusOr<Stages> ParseStages(std::string_view text);

// "2" or "2,blocks.*=3".
std::string StagesText(int otherwise, const std::vector<StageRule>& rules);

// Error: the stage is not 0 to 3, or the pattern malformed.
Status CheckStageRule(const StageRule& rule);

}  // namespace zg
