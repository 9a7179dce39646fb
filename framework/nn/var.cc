#include "framework/nn/var.h"

#include "framework/nn/functions.h"
#include "framework/nn/trace.h"

namespace zg {

Shape Var::shape() const { return empty() ? Shape() : value_->type.shape; }

DType Var::dtype() const { return empty() ? DType::kF32 : value_->type.dtype; }

int64_t Var::dim(int i) const {
  if (empty()) return 1;
  const int num_dims = value_->type.shape.num_dims();
  if (i >= -num_dims && i < num_dims) return value_->type.shape.dim(i);
  if (nn::Trace* trace = nn::Trace::Current()) {
    trace->Fail(
        InvalidArgument("%{} is {}, it has no dim {}", value_->name, value_->type.ToString(), i));
  }
  return 1;
}

Var operator+(Var a, Var b) { return add(a, b); }
Var operator-(Var a, Var b) { return subtract(a, b); }
Var operator*(Var a, Var b) { return multiply(a, b); }
Var operator/(Var a, Var b) { return divide(a, b); }
Var operator+(Var x, double offset) { return shift(x, offset); }
Var operator+(double offset, Var x) { return shift(x, offset); }
Var operator-(Var x, double offset) { return shift(x, -offset); }
Var operator-(double minuend, Var x) { return shift(-x, minuend); }
Var operator*(Var x, double factor) { return scale(x, factor); }
Var operator*(double factor, Var x) { return scale(x, factor); }
Var operator/(Var x, double divisor) {
  return IsFloat(x.dtype()) ? scale(x, 1.0 / divisor) : divide(x, x);
}
Var operator/(double dividend, Var x) { return scale(reciprocal(x), dividend); }
Var operator-(Var x) { return scale(x, -1.0); }

}  // namespace zg
