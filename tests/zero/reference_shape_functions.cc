// Functions whose sizes are changed, broadcast or different.
#include <map>
#include <string>

#include "framework/nn/nn.h"
#include "tests/zero/reference_functions.h"

namespace zg {
namespace {

Var Volume(Var a) { return reshape(a, {1, 2, 3, 2, 2}); }

// Two heads of two channels for queries and keys.
Var Attention(Var a, Var b, bool causal) {
  const Var q = reshape(a, {2, 3, 4});
  return permute(unflatten(attention(q, q * 0.5, b, {.heads = 2, .causal = causal}), 2, {2, -1}),
                 {0, 2, 1, 3});
}

Var CappedAttention(Var a, Var sinks) {
  const Var q = reshape(a, {2, 3, 4});
  AttentionOptions options;
  options.heads = 2;
  options.causal = true;
  options.soft_cap = 0.8;
  options.sinks = sinks;
  return permute(unflatten(attention(q, q * 0.5, q, options), 2, {2, -1}), {0, 2, 1, 3});
}

}  // namespace

const std::map<std::string, Function>& ShapeFunctions() {
  static const auto* const functions = new std::map<std::string, Function>{
      {"interpolate1d", [](Var a, Var b) { return interpolate1d(a, 7) * b; }},
      {"interpolate1d_linear",
       [](Var a, Var b) { return interpolate1d(a, 6, Interpolation::kBilinear) * b; }},
      {"interpolate1d_corners",
       [](Var a, Var b) { return interpolate1d(a, 3, Interpolation::kBilinear, true) * b; }},
      {"interpolate3d",
       [](Var a, Var b) {
         return interpolate3d(Volume(a), {5, 3, 4}) * b;
       }},
      {"interpolate3d_linear",
       [](Var a, Var b) {
         return interpolate3d(Volume(a), {2, 5, 3}, Interpolation::kBilinear) * b;
       }},
      {"interpolate3d_corners",
       [](Var a, Var b) {
         const Var x = reshape(a, {2, 1, 3, 2, 2});
         return interpolate3d(x, {4, 3, 5}, Interpolation::kBilinear, true) * b;
       }},
      {"einsum_broadcast",
       [](Var a, Var b) {
         return einsum("bij,bjk->bik", a, b) + sum(einsum("bij,bik->jk", a, slice(b, 1, 0, 1)));
       }},
      {"attention_narrow_values", [](Var a, Var b) { return Attention(a, b, false); }},
      {"attention_wide_values", [](Var a, Var b) { return Attention(a, b, true); }},
      {"attention_soft_cap_and_sinks", CappedAttention},
  };
  return *functions;
}

}  // namespace zg
