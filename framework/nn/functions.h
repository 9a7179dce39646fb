// The functions that models are made of: each function of Vars appends one node to the graph being
// traced. Outside of the function given to Graph::train or Graph::eval nothing is traced, and each
// of them ends the process with an error that names it. The formulas are those of the ops of the
// same names (framework/ops). Modules that bring their own parameters are in linear.h, embedding.h,
// ...; losses in losses.h. Shapes: B batch, T time, C channels, V vocabulary; "..." any leading
// dims.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/ir/attribute.h"
#include "framework/nn/var.h"

namespace zg {

namespace nn {
// Appends one node; returns its first output.
Var append(const std::string& op, const std::vector<Var>& inputs, ir::Attributes attributes = {});
// Returns all of its outputs; none after an error.
std::vector<Var> append_all(const std::string& op, const std::vector<Var>& inputs,
                            ir::Attributes attributes = {});
}  // namespace nn

// Elementwise; shapes are broadcast as in NumPy. Operands are floating-point or i64; of two dtypes both
// become the wider one, as in PyTorch: a condition beside a number is 0 or 1. Numbers beside i64 must be
// whole. Overflow of i64 wraps around.
Var add(Var a, Var b);
Var subtract(Var a, Var b);
Var multiply(Var a, Var b);
Var maximum(Var a, Var b);
Var minimum(Var a, Var b);
Var scale(Var x, double factor);
Var shift(Var x, double offset);
Var abs(Var x);
Var sign(Var x);
Var square(Var x);
// To [low, high]; elements at a bound still get the whole gradient.
Var clamp(Var x, double low, double high);
Var clamp_min(Var x, double low);
Var clamp_max(Var x, double high);
inline Var maximum(Var x, double low) { return clamp_min(x, low); }
inline Var minimum(Var x, double high) { return clamp_max(x, high); }

// x of i64 divided by a whole number >= 1, rounded towards minus infinity; and what remains, in [0,
// divisor).
inline Var floor_divide(Var x, int64_t divisor) {
  return nn::append("floor_divide", {x}, {{"value", divisor}});
}
inline Var remainder(Var x, int64_t divisor) {
  return nn::append("remainder", {x}, {{"value", divisor}});
}

// Elementwise, floating-point from here on.
Var divide(Var a, Var b);  // or of two dtypes, as above
inline Var sqrt(Var x) { return nn::append("sqrt", {x}); }
inline Var rsqrt(Var x) { return nn::append("rsqrt", {x}); }
inline Var reciprocal(Var x) { return nn::append("reciprocal", {x}); }
inline Var exp(Var x) { return nn::append("exp", {x}); }
inline Var log(Var x) { return nn::append("log", {x}); }
inline Var expm1(Var x) { return nn::append("expm1", {x}); }
inline Var log1p(Var x) { return nn::append("log1p", {x}); }
inline Var sin(Var x) { return nn::append("sin", {x}); }
inline Var cos(Var x) { return nn::append("cos", {x}); }
inline Var erf(Var x) { return nn::append("erf", {x}); }

// ln(e^a + e^b), also where the powers would overflow.
Var logaddexp(Var a, Var b);
// Whole numbers of a floating-point dtype; their gradient is 0. `round` takes the even one of two.
inline Var floor(Var x) { return nn::append("floor", {x}); }
inline Var round(Var x) { return nn::append("round", {x}); }
inline Var ceil(Var x) { return scale(floor(scale(x, -1.0)), -1.0); }

// x^exponent, of 2 and 3 by products; NaN for x < 0 unless the exponent is an integer. 0^0 is 1.
Var pow(Var x, double exponent);
inline Var pow(Var x, Var exponent) { return nn::append("pow", {x, exponent}); }

// x, treated as a constant by backward; shares its memory.
inline Var stop_gradient(Var x) { return nn::append("stop_gradient", {x}); }

// x, placed as `sbp` (B or S(dim)) along the mesh axis `axis`, whose ranks share micro-batches; the
// placements of values computed from it follow. On a mesh without the axis it returns x. The user's
// rules (config().place_results) do the same without a change of the model. A loss over the samples of
// several ranks: models/README.md.
inline Var place(Var x, const std::string& axis, Sbp sbp) {
  return nn::append("place", {x}, {{"sbp", NdSbp{sbp}}, {"axis", axis}});
}

inline Var relu(Var x) { return nn::append("relu", {x}); }
// The approximation by tanh, PyTorch's approximate="tanh"; PyTorch's default is gelu_erf.
inline Var gelu(Var x) { return nn::append("gelu", {x}); }
inline Var gelu_erf(Var x) { return nn::append("gelu_erf", {x}); }
inline Var silu(Var x) { return nn::append("silu", {x}); }
inline Var sigmoid(Var x) { return nn::append("sigmoid", {x}); }
inline Var tanh(Var x) { return nn::append("tanh", {x}); }
inline Var softplus(Var x) { return nn::append("softplus", {x}); }
inline Var leaky_relu(Var x, double slope = 0.01) {
  return nn::append("leaky_relu", {x}, {{"slope", slope}});
}
inline Var elu(Var x, double alpha = 1.0) { return nn::append("elu", {x}, {{"alpha", alpha}}); }

// Made of the functions above, which are fused where values permit it.
Var relu6(Var x);        // to [0, 6]
Var hardsigmoid(Var x);  // relu6(x + 3) / 6
Var hardswish(Var x);    // x hardsigmoid(x)
Var mish(Var x);         // x tanh(softplus(x)) (arXiv 1908.08681)
Var selu(Var x);         // 1.0507 elu(x, 1.6733) (arXiv 1706.02515)
Var log_sigmoid(Var x);  // ln(sigmoid(x))
Var softsign(Var x);     // x / (1 + |x|)
Var tanhshrink(Var x);   // x - tanh(x)
// Towards 0 by `by`, and 0 within it; hardshrink only replaces what is within it.
Var softshrink(Var x, double by = 0.5);
Var hardshrink(Var x, double by = 0.5);
Var threshold(Var x, double limit, double value);  // x where it is above the limit, else the value
Var hardtanh(Var x, double low = -1.0, double high = 1.0);  // to [low, high]
Var celu(Var x,
         double alpha = 1.0);  // x where x > 0, else alpha (e^(x / alpha) - 1) (arXiv 1704.07483)
// a sigmoid(b) of the halves a and b along one dim (arXiv 1612.08083).
Var glu(Var x, int64_t dim = -1);
// x where x > 0, else slope x (arXiv 1502.01852); slope (1), or (C) for x (B, C, ...).
Var prelu(Var x, Var slope);

// x (..., K), weight (N, K), bias (N) -> (..., N).
inline Var linear(Var x, Var weight) { return nn::append("linear", {x, weight}); }
inline Var linear(Var x, Var weight, Var bias) { return nn::append("linear", {x, weight, bias}); }

// ids (...) i64, table (V, C) -> (..., C).
inline Var embedding(Var ids, Var table) { return nn::append("embedding", {table, ids}); }

// x (..., C), gamma and beta (C); or with more dims, over which x is normalised together.
Var layer_norm(Var x, Var gamma, Var beta, double epsilon = 1e-5);

// Without scale and shift.
Var layer_norm(Var x, double epsilon = 1e-5);

// x (..., C), weight (C); or with more dims, as for layer_norm.
Var rms_norm(Var x, Var weight, double epsilon = 1e-6);

// qkv (B, T, 3C) = [q | k | v], each with its heads side by side -> (B, T, C). With `causal` a
// position sees only itself and earlier positions.
Var attention(Var qkv, int64_t heads, bool causal = true);

// In training, zeroes elements with this probability p and scales the others by 1 / (1 - p). In
// eval returns x. Each call has its own mask, which depends on the calling module's path and not on
// ranks.
Var dropout(Var x, double probability);

}  // namespace zg
