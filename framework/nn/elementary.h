// Elementary functions of Vars beyond those in functions.h. Names and meaning are PyTorch's; angles are
// in radians, and operands floating-point. Precise near 0 where the function is 0 there.
#pragma once

#include "framework/nn/functions.h"
#include "framework/nn/var.h"

namespace zg {

Var tan(Var x);                                             // |x| < 2^20
inline Var atan(Var x) { return nn::append("atan", {x}); }  // in [-pi/2, pi/2]
// The angle of the point (x, y), in [-pi, pi]; shapes are broadcast.
inline Var atan2(Var y, Var x) { return nn::append("atan2", {y, x}); }
// -1 <= x <= 1; at these ends they have no gradient.
Var asin(Var x);
Var acos(Var x);

Var sinh(Var x);
Var cosh(Var x);
Var asinh(Var x);  // |x| < 10^19
Var acosh(Var x);  // 1 <= x < 10^19
Var atanh(Var x);  // |x| < 1

Var exp2(Var x);
Var log2(Var x);
Var log10(Var x);

Var trunc(Var x);  // rounded towards 0; its gradient is 0
// From a, where the weight is 0, to b, where it is 1.
Var lerp(Var a, Var b, double weight);
Var lerp(Var a, Var b, Var weight);

}  // namespace zg
