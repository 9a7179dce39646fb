// Elementary functions of Vars beyond those in functions.h. Names and meaning are PyTorch's; angles are
// in radians, and operands floating-point. Precise near 0 where the function is 0 there.
#pragma once

#include "framework/nn/functions.h"
#include "framework/nn/var.h"

namespace zg {

Var tan(Var x);
inline Var atan(Var x) { return nn::append("atan", {x}); }  // in [-pi/2, pi/2]
// The angle of the point (x, y), in [-pi, pi]; shapes are broadcast. Its gradient at (0, 0) is 0.
inline Var atan2(Var y, Var x) { return nn::append("atan2", {y, x}); }
// -1 <= x <= 1; at these ends they have no gradient.
Var asin(Var x);
Var acos(Var x);

Var sinh(Var x);
Var cosh(Var x);
Var asinh(Var x);
Var acosh(Var x);  // x >= 1
Var atanh(Var x);  // |x| < 1

// 1 - erf(x), e^(x^2) times that, and the function whose erf is x, for |x| < 1.
inline Var erfc(Var x) { return nn::append("erfc", {x}); }
inline Var erfcx(Var x) { return nn::append("erfcx", {x}); }  // torch.special.erfcx
inline Var erfinv(Var x) { return nn::append("erfinv", {x}); }
// How much of the standard normal distribution is below x, and its logarithm (torch.special).
Var ndtr(Var x);
Var log_ndtr(Var x);

// ln |gamma(x)| and its derivatives; that of the last one is missing (torch.polygamma(1, x)).
inline Var lgamma(Var x) { return nn::append("lgamma", {x}); }
inline Var digamma(Var x) { return nn::append("digamma", {x}); }
inline Var trigamma(Var x) { return nn::append("trigamma", {x}); }

Var logit(Var x);         // ln(x / (1 - x)), 0 < x < 1
Var xlogy(Var x, Var y);  // x ln(y), and 0 where x is 0
Var sinc(Var x);          // sin(pi x) / (pi x), 1 at 0
Var hypot(Var a, Var b);  // sqrt(a^2 + b^2); at (0, 0) it has no gradient
Var frac(Var x);          // x - trunc(x)
// a - b floor(a / b), which has the sign of b, and a - b trunc(a / b), that of a; rounded (PyTorch's are
// exact). Of i64 by a constant: functions.h.
Var remainder(Var a, Var b);
Var fmod(Var a, Var b);

Var exp2(Var x);
Var log2(Var x);
Var log10(Var x);

Var trunc(Var x);  // rounded towards 0; its gradient is 0
// From a, where the weight is 0, to b, where it is 1.
Var lerp(Var a, Var b, double weight);
Var lerp(Var a, Var b, Var weight);

}  // namespace zg
