#include "framework/nn/extremes.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "framework/nn/conditions.h"
#include "framework/nn/dims.h"
#include "framework/nn/elementary.h"
#include "framework/nn/functions.h"
#include "framework/nn/indexing.h"
#include "framework/nn/reductions.h"

namespace zg {
namespace {

Dims WithoutOrOne(Var x, const Dims& dims, bool keep_dims) {
  Dims sizes;
  for (int64_t dim = 0; dim < x.shape().num_dims(); ++dim) {
    const bool is_reduced = std::binary_search(dims.begin(), dims.end(), dim);
    if (!is_reduced) {
      sizes.push_back(x.dim(static_cast<int>(dim)));
    } else if (keep_dims) {
      sizes.push_back(1);
    }
  }
  return sizes;
}

// Along one dim, which then has size 1; `dim` is one of x's.
TopK Along(Var x, int64_t dim, int64_t k, bool largest);

// The bits of i64 in two parts, which f32 holds exactly below 2^44.
constexpr int64_t kLowerPart = int64_t{1} << 20;
Var UpperPart(Var x) { return to(floor_divide(x, kLowerPart), DType::kF32); }
Var LowerPart(Var x) { return to(remainder(x, kLowerPart), DType::kF32); }

// Among those whose upper part is extreme, the one with an extreme lower part.
TopK ExtremeInteger(Var x, int64_t dim, bool largest) {
  const Var upper = UpperPart(x);
  const Var is_extreme = equal(upper, Along(upper, dim, 1, largest).values);
  const double other = largest ? -1.0 : static_cast<double>(kLowerPart);
  const Var index = Along(where(is_extreme, LowerPart(x), other), dim, 1, largest).indices;
  return {gather(x, dim, index), index};
}

// Sorted by the lower part, then by the upper one: equal elements keep their order.
TopK SortedIntegers(Var x, int64_t dim, int64_t k, bool largest) {
  const Var by_lower = Along(LowerPart(x), dim, x.dim(static_cast<int>(dim)), largest).indices;
  const Var index =
      gather(by_lower, dim, Along(gather(UpperPart(x), dim, by_lower), dim, k, largest).indices);
  return {gather(x, dim, index), index};
}

TopK Along(Var x, int64_t dim, int64_t k, bool largest) {
  if (x.dtype() == DType::kI64) {
    return k == 1 ? ExtremeInteger(x, dim, largest) : SortedIntegers(x, dim, k, largest);
  }
  const std::vector<Var> outputs =
      nn::append_all("top_k", {x}, {{"dim", dim}, {"k", k}, {"largest", largest}});
  return outputs.empty() ? TopK() : TopK{outputs[0], outputs[1]};
}

// Merges several dims into one: moved to the end, unless they are adjacent already.
Var Extreme(const char* function, Var x, const Dims& dims, bool keep_dims, bool largest) {
  return nn::Checked(function, x, [&]() -> StatusOr<Var> {
    ZG_ASSIGN_OR_RETURN(const Dims own, nn::DimsOf(function, x, dims));
    if (own.empty()) return x;
    const Dims result = WithoutOrOne(x, own, keep_dims);
    if (own.size() == 1) return reshape(Along(x, own[0], 1, largest).values, result);
    const bool side_by_side = own.back() - own.front() + 1 == static_cast<int64_t>(own.size());
    if (side_by_side) {
      const Var flat = flatten(x, own.front(), own.back());
      return reshape(Along(flat, own.front(), 1, largest).values, result);
    }
    Dims order;
    for (int64_t dim = 0; dim < x.shape().num_dims(); ++dim) {
      if (!std::binary_search(own.begin(), own.end(), dim)) order.push_back(dim);
    }
    const int64_t first = static_cast<int64_t>(order.size());
    order.insert(order.end(), own.begin(), own.end());
    const Var flat = flatten(permute(x, order), first);
    return reshape(Along(flat, first, 1, largest).values, result);
  });
}

Var WhereIs(const char* function, Var x, int64_t dim, bool keep_dims, bool largest) {
  return nn::Checked(function, x, [&]() -> StatusOr<Var> {
    ZG_ASSIGN_OR_RETURN(const int64_t own, nn::DimOf(function, x, dim));
    const Var index = Along(x, own, 1, largest).indices;
    return keep_dims ? index : squeeze(index, own);
  });
}

// Floating-point numbers in the order of x along one dim, the first of equal elements the most extreme.
Var InOrder(Var x, int64_t dim, bool largest) {
  if (x.dtype() != DType::kI64) return stop_gradient(largest ? x : -x);
  const int64_t size = x.dim(static_cast<int>(dim));
  const Var sorted = to(Along(x, dim, size, largest).indices, DType::kF32);
  return -to(Along(sorted, dim, size, /*largest=*/false).indices, DType::kF32);
}

TopK SoFar(const char* function, Var x, int64_t dim, bool largest) {
  TopK result;
  nn::Checked(function, x, [&]() -> StatusOr<Var> {
    ZG_ASSIGN_OR_RETURN(const int64_t own, nn::DimOf(function, x, dim));
    result.indices = nn::append("cumulative_argmax", {InOrder(x, own, largest)}, {{"dim", own}});
    result.values = gather(x, own, result.indices);
    return result.values;
  });
  return result;
}

Var ElementAt(Var x, int64_t dim, int64_t index, bool keep_dims) {
  return keep_dims ? slice(x, dim, index, index + 1) : select(x, dim, index);
}

// y, or NaN where the first element of a sorted sequence is: sorting puts NaN there.
Var OrNaN(Var first, Var y) { return where(equal(first, first), y, first); }

}  // namespace

Var max(Var x, const ReducedDims& dims, bool keep_dims) {
  return Extreme("max", x, dims, keep_dims, /*largest=*/true);
}
Var min(Var x, const ReducedDims& dims, bool keep_dims) {
  return Extreme("min", x, dims, keep_dims, /*largest=*/false);
}

Var argmax(Var x, int64_t dim, bool keep_dims) {
  return WhereIs("argmax", x, dim, keep_dims, /*largest=*/true);
}
Var argmin(Var x, int64_t dim, bool keep_dims) {
  return WhereIs("argmin", x, dim, keep_dims, /*largest=*/false);
}

TopK top_k(Var x, int64_t k, int64_t dim, bool largest) {
  TopK result;
  nn::Checked("top_k", x, [&]() -> StatusOr<Var> {
    ZG_ASSIGN_OR_RETURN(const int64_t own, nn::DimOf("top_k", x, dim));
    result = Along(x, own, k, largest);
    return result.values;
  });
  return result;
}

TopK sort(Var x, int64_t dim, bool descending) {
  TopK result;
  nn::Checked("sort", x, [&]() -> StatusOr<Var> {
    ZG_ASSIGN_OR_RETURN(const int64_t own, nn::DimOf("sort", x, dim));
    result = Along(x, own, x.dim(static_cast<int>(own)), descending);
    return result.values;
  });
  return result;
}

TopK cummax(Var x, int64_t dim) { return SoFar("cummax", x, dim, /*largest=*/true); }
TopK cummin(Var x, int64_t dim) { return SoFar("cummin", x, dim, /*largest=*/false); }

Var quantile(Var x, double q, int64_t dim, bool keep_dims) {
  return nn::Checked("quantile", x, [&]() -> StatusOr<Var> {
    ZG_ASSIGN_OR_RETURN(const int64_t own, nn::DimOf("quantile", x, dim));
    const int64_t size = x.dim(static_cast<int>(own));
    if (!(q >= 0.0 && q <= 1.0) || size < 1) {
      return InvalidArgument("{}: got q {} for {} elements, expected 0 <= q <= 1 and at least one",
                             nn::Caller("quantile", x), q, size);
    }
    const Var sorted = sort(x, own).values;
    const double position = q * static_cast<double>(size - 1);
    const auto below = static_cast<int64_t>(position);
    const double share = position - static_cast<double>(below);
    const auto at = [&](int64_t i) { return ElementAt(sorted, own, i, keep_dims); };
    return OrNaN(at(0), share == 0.0 ? at(below) : lerp(at(below), at(below + 1), share));
  });
}

Var median(Var x, int64_t dim, bool keep_dims) {
  return nn::Checked("median", x, [&]() -> StatusOr<Var> {
    ZG_ASSIGN_OR_RETURN(const int64_t own, nn::DimOf("median", x, dim));
    const int64_t size = x.dim(static_cast<int>(own));
    if (size < 1) return InvalidArgument("{}: dim {} is empty", nn::Caller("median", x), own);
    const Var sorted = sort(x, own).values;
    return OrNaN(ElementAt(sorted, own, 0, keep_dims),
                 ElementAt(sorted, own, (size - 1) / 2, keep_dims));
  });
}

Var argsort(Var x, int64_t dim, bool descending) {
  const nn::Trace::Function called("argsort");
  return sort(x, dim, descending).indices;
}

Var any(Var x, const ReducedDims& dims, bool keep_dims) {
  const nn::Trace::Function called("any");
  return sum(to(to(x, DType::kBool), DType::kF32), dims, keep_dims) > 0.0;
}
Var all(Var x, const ReducedDims& dims, bool keep_dims) {
  const nn::Trace::Function called("all");
  return !any(!to(x, DType::kBool), dims, keep_dims);
}

Var logsumexp(Var x, const ReducedDims& dims, bool keep_dims) {
  return nn::Checked("logsumexp", x, [&]() -> StatusOr<Var> {
    ZG_ASSIGN_OR_RETURN(const Dims own, nn::DimsOf("logsumexp", x, dims));
    const Var largest = stop_gradient(max(x, own, /*keep_dims=*/true));
    const Var shift = where(isfinite(largest), largest, 0.0);
    const Var y = log(sum(exp(x - shift), own, /*keep_dims=*/true)) + shift;
    return keep_dims ? y : reshape(y, WithoutOrOne(x, own, false));
  });
}

Var logcumsumexp(Var x, int64_t dim) {
  return nn::Checked("logcumsumexp", x, [&]() -> StatusOr<Var> {
    ZG_ASSIGN_OR_RETURN(const int64_t own, nn::DimOf("logcumsumexp", x, dim));
    return nn::append("logcumsumexp", {x}, {{"dim", own}});
  });
}

Var vector_norm(Var x, double p, const ReducedDims& dims, bool keep_dims) {
  return nn::Checked("vector_norm", x, [&]() -> StatusOr<Var> {
    ZG_RETURN_IF_ERROR(nn::ExpectFloatingPoint("vector_norm", x));
    if (std::isinf(p)) {
      return p > 0.0 ? max(abs(x), dims, keep_dims) : min(abs(x), dims, keep_dims);
    }
    if (p == 0.0) return sum(to(not_equal(x, 0.0), DType::kF32), dims, keep_dims);
    if (p == 1.0) return sum(abs(x), dims, keep_dims);
    if (p == 2.0) return norm(x, dims, keep_dims);
    Var powers = abs(x);
    if (p < 1.0) {  // whose slope at 0 is infinite
      const Var is_zero = equal(powers, 0.0);
      const double of_zero = p > 0.0 ? 0.0 : std::numeric_limits<double>::infinity();
      powers = where(is_zero, of_zero, pow(where(is_zero, 1.0, powers), p));
    } else {
      powers = pow(powers, p);
    }
    const Var total = sum(powers, dims, keep_dims);
    const Var is_zero = equal(total, p > 0.0 ? 0.0 : std::numeric_limits<double>::infinity());
    return where(is_zero, 0.0, pow(where(is_zero, 1.0, total), 1.0 / p));
  });
}

}  // namespace zg
