// Gradients as values inside a model, and gradients that a model defines itself. Both also work
// eagerly (framework/eager).
#pragma once

#include <functional>
#include <vector>

#include "framework/nn/var.h"

namespace zg {

// The gradients of y, an f32 scalar, for each of the sources. They are Vars like others, so a loss
// can use them, such as a gradient penalty (Gulrajani et al., arXiv 1704.00028):
//   Var x = in.f32("x", {B, C}), score = critic(x);
//   Var slope = sqrt(sum(square(gradients(sum(score), {x})[0]), {1}) + 1e-12);
//   return mean(score) + 10.0 * mean(square(slope - 1.0));
// Training then needs gradients of gradients. Most functions have them; attention, RNN, LSTM, GRU,
// selective_scan, ctc_loss, digamma and the exponents of pow and exp2 do not, and the error names the op.
// Errors: y is not an f32 scalar, or does not depend on a source.
std::vector<Var> gradients(Var y, const std::vector<Var>& sources);

// The result of forward(inputs), with the gradients that `backward` computes from that of the
// output: one of each input's shape, or an empty Var for an input that gets none. A
// straight-through estimator:
//   Var sign = custom_gradient(
//       {x}, [](const std::vector<Var>& in) { return zg::sign(in[0]); },
//       [](const std::vector<Var>& in, Var, Var dy) -> std::vector<Var> {
//         return {where(less_equal(abs(in[0]), 1.0), dy, 0.0)};
//       });
// Other values that `backward` reads are kept from forward. gradients() in `backward` goes through what
// `forward` did, so an implicit layer, whose output is a constant there, needs stop_gradient(output).
// Second derivatives are those of the ops
// of both functions. Errors: `forward` reads a parameter that is not an input, and would get no
// gradient; another number or shape of gradients. In f16 gradients are those of the scaled loss, so that
// `backward` must be linear in dy there: a clamp of it would cut them. In eager mode `backward` runs one additional
// time, whose result is unused.
using GradientInputs = std::vector<Var>;
Var custom_gradient(const GradientInputs& inputs,
                    const std::function<Var(const GradientInputs& inputs)>& forward,
                    const std::function<std::vector<Var>(const GradientInputs& inputs, Var output,
                                                         Var output_gradient)>& backward);

}  // namespace zg
