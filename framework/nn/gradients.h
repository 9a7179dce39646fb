// Gradients that a model has to do with itself: as values, and of its own making. Both also run at
// once (framework/eager).
#pragma once

#include <functional>
#include <vector>

#include "framework/nn/var.h"

namespace zg {

// The gradients of y, a f32 scalar, for each of the sources: Vars like others, to make a loss of, such
// as a gradient penalty (Gulrajani et al., arXiv 1704.00028):
//   Var x = in.f32("x", {B, C}), score = critic(x);
//   Var slope = sqrt(sum(square(gradients(sum(score), {x})[0]), {1}) + 1e-12);
//   return mean(score) + 10.0 * mean(square(slope - 1.0));
// Training then needs gradients of gradients. Products, sums and most elementwise ops have them; of an
// op without, the error names it. Errors: y is no f32 scalar, or does not depend on a source.
std::vector<Var> gradients(Var y, const std::vector<Var>& sources);

// What forward(inputs) gives, with the gradients that `backward` makes of that of the output: one of
// each input's shape, or an empty Var for an input that gets none. A straight-through estimator:
//   Var sign = custom_gradient(
//       {x}, [](const std::vector<Var>& in) { return zg::sign(in[0]); },
//       [](const std::vector<Var>& in, Var, Var dy) -> std::vector<Var> {
//         return {where(less_equal(abs(in[0]), 1.0), dy, 0.0)};
//       });
// What else `backward` reads stays from forward. Second derivatives are those of the ops of both
// functions. Errors: `forward` reads a parameter that is no input, and would get no gradient; another
// number or shape of gradients. When it runs at once, `backward` runs in vain once more.
using GradientInputs = std::vector<Var>;
Var custom_gradient(const GradientInputs& inputs,
                    const std::function<Var(const GradientInputs& inputs)>& forward,
                    const std::function<std::vector<Var>(const GradientInputs& inputs, Var output,
                                                         Var output_gradient)>& backward);

}  // namespace zg
