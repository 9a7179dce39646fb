// PlacementRule: the placement of a user's parameters, or of modules' results, along a mesh axis
// whose ranks work on one micro-batch together. The text form, as in a file of rules, has one rule
// per line:
//
//   # columns of the first product, rows of the second
//   blocks.*.mlp.up           tensor=S(0)
//   blocks.*.mlp.down.weight  tensor=S(1)
//   # each rank has a part of the sequence
//   token_embedding ->        tensor=S(1)
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "framework/base/status.h"
#include "framework/ir/mesh.h"
#include "framework/ir/sbp.h"
#include "framework/ir/scope_pattern.h"

namespace zg {

struct PlacementRule {
  enum class Of {
    kParameters,  // the parameters that the pattern names, or those of the modules that it names
    kResults,     // the results that the modules named by the pattern give to other modules
  };

  std::string pattern;  // ir/scope_pattern.h
  std::string axis;
  Sbp sbp = Sbp::B();  // B, S(dim) or, for parameters, S(dim:groups)
  Of of = Of::kParameters;

  std::string ToString() const;  // "blocks.*.mlp.up tensor=S(0)", "token_embedding -> tensor=S(1)"
};

// The axis of the mesh that the rule is for. Errors: the mesh lacks it; its ranks compute different
// micro-batches.
StatusOr<int> SharedAxisOf(const PlacementRule& rule, const Mesh& mesh);

// Errors name the line.
StatusOr<std::vector<PlacementRule>> ParsePlacementRules(std::string_view text);

}  // namespace zg
