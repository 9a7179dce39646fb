#include "framework/nn/linear_algebra.h"

#include <cmath>
#include <cstdlib>
#include <limits>
#include <utility>
#include <vector>

#include "framework/nn/conditions.h"
#include "framework/nn/constants.h"
#include "framework/nn/dims.h"
#include "framework/nn/indexing.h"
#include "framework/nn/products.h"
#include "framework/nn/reductions.h"
#include "framework/nn/shapes.h"
#include "framework/ops/broadcasting.h"

namespace zg {

using nn::Caller;
using nn::Checked;
using nn::DimOf;

namespace {

Shape WithoutMatrix(const Shape& shape) {
  return Shape(Dims(shape.dims().begin(), shape.dims().end() - 2));
}

// x, repeated for the leading dims.
Var ForBatch(Var x, const Shape& batch) {
  Dims dims = batch.dims();
  dims.insert(dims.end(), {x.dim(-2), x.dim(-1)});
  return x.shape().dims() == dims ? x : expand(x, dims);
}

// An op on systems of equations, solve(a, b), whose operands get the same leading dims. Error: there are
// none.
template <typename Solve>
StatusOr<Var> OnSystem(const char* function, Var a, Var b, const Solve& solve) {
  ZG_RETURN_IF_ERROR(nn::Trace::Of(function).CheckUsable(b).WithContext(function));
  const bool is_vector = b.shape().num_dims() == 1;
  if (is_vector) b = unsqueeze(b, 1);
  if (a.shape().num_dims() < 2 || b.shape().num_dims() < 2) {
    return InvalidArgument("{}: expected matrices of at least two dims", Caller(function, a));
  }
  const auto batch = BroadcastShapes(WithoutMatrix(a.shape()), WithoutMatrix(b.shape()));
  if (!batch.has_value()) {
    return InvalidArgument("{}: its leading dims and those of {} cannot be broadcast to one",
                           Caller(function, a), b.shape().ToString());
  }
  const Var x = solve(ForBatch(a, *batch), ForBatch(b, *batch));
  return is_vector ? squeeze(x, -1) : x;
}

Var Triangular(Var a, Var b, ir::Attributes attributes) {
  return nn::append("solve_triangular", {a, b}, std::move(attributes));
}

}  // namespace

Var solve(Var a, Var b) {
  return Checked("solve", a, [&] {
    return OnSystem("solve", a, b, [](Var a, Var b) { return nn::append("solve", {a, b}); });
  });
}

Var inverse(Var a) { return nn::append("inverse", {a}); }

Slogdet slogdet(Var a) {
  const std::vector<Var> outputs = nn::append_all("slogdet", {a});
  return outputs.empty() ? Slogdet() : Slogdet{stop_gradient(outputs[1]), outputs[0]};
}

Var det(Var a) {
  const nn::Trace::Function called("det");
  const auto [sign, logabsdet] = slogdet(a);
  return sign * exp(logabsdet);
}

Var logdet(Var a) {
  const nn::Trace::Function called("logdet");
  const auto [sign, logabsdet] = slogdet(a);
  return where(sign < 0.0, std::nan(""), logabsdet);
}

Var cholesky(Var a) {
  return Checked("cholesky", a, [&]() -> StatusOr<Var> {
    if (a.shape().num_dims() < 2 || a.dim(-1) != a.dim(-2)) {
      return InvalidArgument("{}: expected square matrices", Caller("cholesky", a));
    }
    return nn::append("cholesky", {scale(a + transpose(a, -1, -2), 0.5)});
  });
}

Var cholesky_solve(Var b, Var l) {
  return Checked("cholesky_solve", l, [&]() -> StatusOr<Var> {
    return OnSystem("cholesky_solve", l, b, [](Var l, Var b) {
      const Var inner = Triangular(l, b, {{"upper", false}});
      return Triangular(l, inner, {{"upper", false}, {"transposed", true}});
    });
  });
}

Var solve_triangular(Var a, Var b, bool upper, bool unit) {
  return Checked("solve_triangular", a, [&] {
    return OnSystem("solve_triangular", a, b, [&](Var a, Var b) {
      return Triangular(a, b, {{"upper", upper}, {"unit", unit}});
    });
  });
}

Var matrix_power(Var a, int64_t exponent) {
  return Checked("matrix_power", a, [&]() -> StatusOr<Var> {
    if (a.shape().num_dims() < 2 || a.dim(-1) != a.dim(-2)) {
      return InvalidArgument("{}: expected square matrices", Caller("matrix_power", a));
    }
    if (exponent == std::numeric_limits<int64_t>::min()) {
      return InvalidArgument("{}: got the exponent {}, expected one whose negative is a number",
                             Caller("matrix_power", a), exponent);
    }
    if (exponent == 0) return expand(eye(a.dim(-1)), a.shape().dims());
    Var square = exponent < 0 ? inverse(a) : a;
    Var result;  // of the bits of the exponent so far
    bool has_result = false;
    for (int64_t rest = std::abs(exponent); rest > 0; rest /= 2) {
      if (rest % 2 == 1) {
        result = has_result ? matmul(result, square) : square;
        has_result = true;
      }
      if (rest > 1) square = matmul(square, square);
    }
    return result;
  });
}

Var trace(Var a) {
  const nn::Trace::Function called("trace");
  return sum(diagonal(a), {-1});
}

Var cross(Var a, Var b, int64_t dim) {
  return Checked("cross", a, [&]() -> StatusOr<Var> {
    ZG_RETURN_IF_ERROR(nn::Trace::Of("cross").CheckUsable(b).WithContext("cross"));
    ZG_ASSIGN_OR_RETURN(const int64_t own, DimOf("cross", a, dim));
    const int64_t from_end = own - a.shape().num_dims();
    if (b.shape().num_dims() < -from_end || a.dim(static_cast<int>(from_end)) != 3 ||
        b.dim(static_cast<int>(from_end)) != 3) {
      return InvalidArgument(
          "{}: got another operand of shape {}, expected 3 elements along dim {}",
          Caller("cross", a), b.shape().ToString(), from_end);
    }
    const auto turned = [&](Var x, int64_t by) { return roll(x, by, from_end); };
    return turned(a, -1) * turned(b, 1) - turned(a, 1) * turned(b, -1);
  });
}

Var kron(Var a, Var b) {
  return Checked("kron", a, [&]() -> StatusOr<Var> {
    ZG_RETURN_IF_ERROR(nn::Trace::Of("kron").CheckUsable(b).WithContext("kron"));
    if (a.shape().num_dims() != 2 || b.shape().num_dims() != 2) {
      return InvalidArgument("{}: got another operand of shape {}, expected two matrices",
                             Caller("kron", a), b.shape().ToString());
    }
    const Var blocks =
        reshape(a, {a.dim(0), 1, a.dim(1), 1}) * reshape(b, {1, b.dim(0), 1, b.dim(1)});
    return reshape(blocks, {a.dim(0) * b.dim(0), a.dim(1) * b.dim(1)});
  });
}

}  // namespace zg
