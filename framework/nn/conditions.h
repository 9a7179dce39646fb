// Functions of Vars that compare, and that choose by a comparison. Names and meaning are PyTorch's;
// shapes are broadcast as in NumPy. A condition is a Var of dtype bool: it has no gradient, stays
// bool in mixed precision, and reads as 0 or 1 in the result of an eval. Operands have one dtype,
// f32, i64 or bool; numbers beside i64 are whole.
#pragma once

#include "framework/nn/var.h"

namespace zg {

// Elementwise; comparisons with NaN are false, except not_equal.
Var equal(Var a, Var b);
Var not_equal(Var a, Var b);
Var less(Var a, Var b);
Var less_equal(Var a, Var b);
Var greater(Var a, Var b);
Var greater_equal(Var a, Var b);
Var equal(Var x, double value);
Var not_equal(Var x, double value);
Var less(Var x, double value);
Var less_equal(Var x, double value);
Var greater(Var x, double value);
Var greater_equal(Var x, double value);

// Vars have no == and !=: they would look like a comparison of handles.
inline Var operator<(Var a, Var b) { return less(a, b); }
inline Var operator<=(Var a, Var b) { return less_equal(a, b); }
inline Var operator>(Var a, Var b) { return greater(a, b); }
inline Var operator>=(Var a, Var b) { return greater_equal(a, b); }
inline Var operator<(Var x, double value) { return less(x, value); }
inline Var operator<=(Var x, double value) { return less_equal(x, value); }
inline Var operator>(Var x, double value) { return greater(x, value); }
inline Var operator>=(Var x, double value) { return greater_equal(x, value); }

// The operands are conditions.
Var logical_and(Var a, Var b);
Var logical_or(Var a, Var b);
Var logical_xor(Var a, Var b);
Var logical_not(Var x);
inline Var operator&(Var a, Var b) { return logical_and(a, b); }
inline Var operator|(Var a, Var b) { return logical_or(a, b); }
inline Var operator!(Var x) { return logical_not(x); }

namespace nn {  // as those of var.h
using zg::operator<;
using zg::operator<=;
using zg::operator>;
using zg::operator>=;
}  // namespace nn

Var isnan(Var x);
Var isinf(Var x);
Var isfinite(Var x);

// a where the condition holds, else b; the gradient goes to the chosen operand.
Var where(Var condition, Var a, Var b);
Var where(Var condition, Var a, double b);
Var where(Var condition, double a, Var b);
// `value` where the mask holds, else x.
Var masked_fill(Var x, Var mask, double value);

// x with numbers in place of NaN and the infinities, which have no gradient (PyTorch's defaults for the
// latter are the largest numbers).
Var nan_to_num(Var x, double nan, double positive_infinity, double negative_infinity);

// x converted to `dtype`: f32, bf16, f16, i64 (rounded towards 0) or bool (whether it is not 0).
// The gradient passes between floating-point dtypes. The compute dtype of mixed precision is chosen
// when the model is compiled (framework/passes/mixed_precision.h), not by casts.
Var to(Var x, DType dtype);

}  // namespace zg
