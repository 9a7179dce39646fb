// ExplainPlacement: explains the placement of a value of a program. For each mesh axis it gives a
// chain from the value back to what decided its placement: a rule of the user, the ZeRO stage, the
// placement of an input, or an op that cannot compute with parts.
//
//   %blocks.0.mlp.h: f32[4,8,64] {S(0),S(2)}, forward, blocks.0.mlp.expand
//     data=2: S(0)
//       %blocks.0.mlp.h is S(0): linear {S(0), B} -> {S(0)}, as its input %x
//       %x is S(0): input "tokens" with this placement
//     tensor=2: S(2)
//       %blocks.0.mlp.h is S(2): linear {B, S(0)} -> {S(2)}, as its input %w
//       %w is S(0): a view of %bucket0
//       %bucket0 is S(0): the rule 'blocks.*.mlp.expand tensor=S(0)'
#pragma once

#include <string>
#include <string_view>

#include "framework/base/status.h"
#include "framework/passes/program.h"

namespace zg::plan {

// `value` with or without its %; "all" for every value, one line each with the first step of its
// chains. Error: the program has no such value; the message names some with the same beginning.
StatusOr<std::string> ExplainPlacement(const Program& program, std::string_view value);

}  // namespace zg::plan
