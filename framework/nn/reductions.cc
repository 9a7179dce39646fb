#include "framework/nn/reductions.h"

#include <optional>

#include "framework/nn/conditions.h"
#include "framework/nn/dims.h"
#include "framework/nn/functions.h"
#include "framework/ops/broadcasting.h"

namespace zg {
namespace {

// The sum over `dims` times a function of the number of summed elements.
template <typename Factor>
Var Sum(const char* function, Var x, const Dims& dims, bool keep_dims, const Factor& factor) {
  return nn::Checked(function, x, [&]() -> StatusOr<Var> {
    ZG_ASSIGN_OR_RETURN(const Dims own, nn::DimsOf(function, x, dims));
    double count = 1.0;
    for (const int64_t dim : own) count *= static_cast<double>(x.dim(static_cast<int>(dim)));
    const double by = factor(count);
    if (!(by > 0.0 && by < 1e300)) {
      return InvalidArgument("{}: got {} elements, which are too few", nn::Caller(function, x),
                             count);
    }
    return nn::append("sum", {x}, {{"dims", own}, {"keep_dims", keep_dims}, {"factor", by}});
  });
}

// The last of the running sums along each dim, which are exact.
Var IntegerSum(Var x, const Dims& dims, bool keep_dims) {
  const nn::Trace::Function called("sum");
  return nn::Checked("sum", x, [&]() -> StatusOr<Var> {
    ZG_ASSIGN_OR_RETURN(const Dims own, nn::DimsOf("sum", x, dims));
    Var result = to(x, DType::kI64);
    for (auto dim = own.rbegin(); dim != own.rend(); ++dim) {
      const int64_t size = result.dim(static_cast<int>(*dim));
      if (size == 0) {
        return InvalidArgument("{}: dim {} is empty", nn::Caller("sum", x), *dim);
      }
      result = slice(cumsum(result, *dim), *dim, size - 1, size);
      if (!keep_dims) result = squeeze(result, *dim);
    }
    return result;
  });
}

// Along one dim, which then has size 1.
Var Product(Var x, int64_t dim) {
  for (int64_t size = x.dim(static_cast<int>(dim)); size > 1; size = (size + 1) / 2) {
    const int64_t half = size / 2;
    const Var products = multiply(slice(x, dim, 0, half), slice(x, dim, half, 2 * half));
    x = size % 2 == 0 ? products : concat({products, slice(x, dim, size - 1, size)}, dim);
  }
  return x;
}

// The root of 1 in the place of that of 0, whose slope is infinite.
Var Root(Var x) {
  const Var is_zero = equal(x, 0.0);
  return where(is_zero, 0.0, sqrt(where(is_zero, 1.0, x)));
}

}  // namespace

Var sum(Var x, const ReducedDims& dims, bool keep_dims) {
  const bool is_integer = !x.empty() && (x.dtype() == DType::kI64 || x.dtype() == DType::kBool);
  if (is_integer) return IntegerSum(x, dims, keep_dims);
  return Sum("sum", x, dims, keep_dims, [](double) { return 1.0; });
}

Var mean(Var x, const ReducedDims& dims, bool keep_dims) {
  return Sum("mean", x, dims, keep_dims, [](double count) { return 1.0 / count; });
}

Var variance(Var x, const ReducedDims& dims, double correction, bool keep_dims) {
  const nn::Trace::Function called("variance");
  const Var distance = x - mean(x, dims, /*keep_dims=*/true);
  return Sum("variance", square(distance), dims, keep_dims,
             [&](double count) { return 1.0 / (count - correction); });
}

Var stddev(Var x, const ReducedDims& dims, double correction, bool keep_dims) {
  const nn::Trace::Function called("stddev");
  return Root(variance(x, dims, correction, keep_dims));
}

Var norm(Var x, const ReducedDims& dims, bool keep_dims) {
  return nn::Checked("norm", x, [&]() -> StatusOr<Var> {
    ZG_RETURN_IF_ERROR(nn::ExpectFloatingPoint("norm", x));
    return Root(sum(square(x), dims, keep_dims));
  });
}

Var normalize(Var x, int64_t dim, double epsilon) {
  const nn::Trace::Function called("normalize");
  return divide(x, clamp_min(norm(x, {dim}, /*keep_dims=*/true), epsilon));
}

Var prod(Var x, const ReducedDims& dims, bool keep_dims) {
  return nn::Checked("prod", x, [&]() -> StatusOr<Var> {
    ZG_ASSIGN_OR_RETURN(const Dims own, nn::DimsOf("prod", x, dims));
    Var y = x;
    for (auto dim = own.rbegin(); dim != own.rend(); ++dim) {
      if (y.dim(static_cast<int>(*dim)) == 0) {
        return InvalidArgument("{}: dim {} is empty", nn::Caller("prod", x), *dim);
      }
      y = Product(y, *dim);
      if (!keep_dims) y = squeeze(y, *dim);
    }
    return y;
  });
}

Var cumsum(Var x, int64_t dim) {
  return nn::Checked("cumsum", x, [&]() -> StatusOr<Var> {
    ZG_ASSIGN_OR_RETURN(const int64_t own, nn::DimOf("cumsum", x, dim));
    return nn::append("cumsum", {x}, {{"dim", own}});
  });
}

Var cumprod(Var x, int64_t dim) {
  return nn::Checked("cumprod", x, [&]() -> StatusOr<Var> {
    ZG_ASSIGN_OR_RETURN(const int64_t own, nn::DimOf("cumprod", x, dim));
    const int64_t size = x.dim(static_cast<int>(own));
    if (size <= 1) return x;
    const Var first = pad(slice(x, own, 0, 1), own, 0, size - 1);
    return linear_recurrence(pad(slice(x, own, 1, size), own, 1, 0), first, own);
  });
}

Var linear_recurrence(Var decay, Var x, int64_t dim, bool from_end, Var before) {
  return nn::Checked("linear_recurrence", x, [&]() -> StatusOr<Var> {
    ZG_RETURN_IF_ERROR(nn::Trace::Of("linear_recurrence")
                           .CheckUsable(decay)
                           .WithContext("linear_recurrence: decay"));
    const std::optional<Shape> shape = BroadcastShapes(decay.shape(), x.shape());
    if (!shape.has_value()) {
      return InvalidArgument("{}: got a decay {}, which does not fit",
                             nn::Caller("linear_recurrence", x), decay.shape().ToString());
    }
    Var wide = expand(x, shape->dims());
    const Var decays = expand(decay, shape->dims());
    ZG_ASSIGN_OR_RETURN(const int64_t own, nn::DimOf("linear_recurrence", wide, dim));
    if (!before.empty()) {
      ZG_RETURN_IF_ERROR(nn::Trace::Of("linear_recurrence")
                             .CheckUsable(before)
                             .WithContext("linear_recurrence: before"));
      Dims of_one = shape->dims();
      of_one.erase(of_one.begin() + own);
      if (before.shape().dims() != of_one) {
        return InvalidArgument("{}: got the state {} before, expected {}",
                               nn::Caller("linear_recurrence", x), before.shape().ToString(),
                               Shape(of_one).ToString());
      }
      const int64_t others = wide.dim(static_cast<int>(own)) - 1;
      const Var first = slice(decays, own, from_end ? others : 0, from_end ? others + 1 : 1);
      const Var kept = first * unsqueeze(before, own);
      wide = wide + pad(kept, own, from_end ? others : 0, from_end ? 0 : others);
    }
    return nn::append("linear_recurrence", {decays, wide}, {{"dim", own}, {"from_end", from_end}});
  });
}

}  // namespace zg
