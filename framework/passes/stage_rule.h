// StageRule: the ZeRO stage of the parameters that match a name, with their gradients and optimizer
// states, if it differs from the stage of the rest. The text form, as on a command line, follows
// the stage of the rest:
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

// The stages of all parameters.
struct Stages {
  int otherwise = 0;  // for parameters that no rule names
  std::vector<StageRule> rules;
};

// A number is the stage of all parameters; without one, parameters that no rule names have stage 0.
// Errors: text other than a number and rules; a stage that is not 0 to 3; a malformed pattern.
StatusOr<Stages> ParseStages(std::string_view text);

// "2" or "2,blocks.*=3".
std::string StagesText(int otherwise, const std::vector<StageRule>& rules);

// Error: the stage is not 0 to 3, or the pattern malformed.
Status CheckStageRule(const StageRule& rule);

}  // namespace zg
