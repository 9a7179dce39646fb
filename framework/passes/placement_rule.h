// PlacementRule: how a user's parameters lie along a mesh axis whose ranks work on one micro-batch
// together. In text, as a file of rules has them, one a line:
//
//   # columns of the first product, rows of the second
//   blocks.*.mlp.up           tensor=S(0)
//   blocks.*.mlp.down.weight  tensor=S(1)
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "framework/base/status.h"
#include "framework/ir/sbp.h"
#include "framework/ir/scope_pattern.h"

namespace zg {

struct PlacementRule {
  std::string pattern;  // of parameters or the modules that have them (ir/scope_pattern.h)
  std::string axis;
  Sbp sbp = Sbp::B();  // B, S(dim) or S(dim:groups)

  std::string ToString() const;  // "blocks.*.mlp.up tensor=S(0)"
};

// Errors name the line.
StatusOr<std::vector<PlacementRule>> ParsePlacementRules(std::string_view text);

}  // namespace zg
