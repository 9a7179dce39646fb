#include "framework/nn/constants.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "framework/nn/conditions.h"
#include "framework/nn/dims.h"
#include "framework/nn/functions.h"
#include "framework/nn/indexing.h"

namespace zg {
namespace {

Var Scalar(double value) { return nn::append("constant", {}, {{"value", value}}); }

Var Literal(DType dtype, const Dims& shape, std::vector<int64_t> numbers) {
  return nn::append("literal", {},
                    {{"dtype", dtype}, {"shape", Shape(shape)}, {"numbers", std::move(numbers)}});
}

Var Full(const char* function, const Dims& shape, double value, DType dtype) {
  const nn::Trace::Function called(function);
  if (std::any_of(shape.begin(), shape.end(), [](int64_t size) { return size < 1; })) {
    return nn::Trace::Of(function).Fail(InvalidArgument(
        "{}: got the shape [{}], expected sizes of at least 1", function, fmt::join(shape, ",")));
  }
  if (dtype == DType::kI64 && !CanHold(dtype, value)) {
    return nn::Trace::Of(function).Fail(
        InvalidArgument("{}: got {}, expected a number that i64 can hold", function, value));
  }
  const Var number = dtype == DType::kI64 ? Literal(dtype, {}, {static_cast<int64_t>(value)})
                                          : to(Scalar(value), dtype);
  return expand(number, shape);
}

// Everything of x is filled, so that it lies as x does where ranks have parts of it.
Var FullLike(const char* function, Var x, double value) {
  return nn::Checked(function, x, [&]() -> StatusOr<Var> {
    return stop_gradient(masked_fill(x, equal(Scalar(1.0), 1.0), value));
  });
}

}  // namespace

Var constant(const Dims& shape, const std::vector<float>& numbers) {
  std::vector<int64_t> bits;
  for (const float number : numbers) {
    uint32_t own;
    std::memcpy(&own, &number, sizeof(own));
    bits.push_back(own);
  }
  const nn::Trace::Function called("constant");
  return Literal(DType::kF32, shape, std::move(bits));
}

Var constant(const Dims& shape, const std::vector<int64_t>& numbers) {
  const nn::Trace::Function called("constant");
  return Literal(DType::kI64, shape, numbers);
}

Var eye(int64_t size) {
  const nn::Trace::Function called("eye");
  return to(equal(unsqueeze(arange(size), 1), arange(size)), DType::kF32);
}

Var linspace(double start, double end, int64_t count) {
  const nn::Trace::Function called("linspace");
  const double distance = count > 1 ? (end - start) / static_cast<double>(count - 1) : 0.0;
  return to(arange(count), DType::kF32) * distance + start;
}

Var full(const Dims& shape, double value, DType dtype) { return Full("full", shape, value, dtype); }
Var zeros(const Dims& shape, DType dtype) { return Full("zeros", shape, 0.0, dtype); }
Var ones(const Dims& shape, DType dtype) { return Full("ones", shape, 1.0, dtype); }

Var full_like(Var x, double value) { return FullLike("full_like", x, value); }
Var zeros_like(Var x) { return FullLike("zeros_like", x, 0.0); }
Var ones_like(Var x) { return FullLike("ones_like", x, 1.0); }

}  // namespace zg
