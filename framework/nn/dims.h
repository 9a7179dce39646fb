// Dims as users give them: negative ones count from the end.
#pragma once

#include <string>
#include <string_view>

#include "framework/base/status.h"
#include "framework/nn/shapes.h"
#include "framework/nn/trace.h"

namespace zg::nn {

// The operation that an error names: "slice of %x f32[4,8]".
std::string Caller(std::string_view function, Var x);

Status ExpectFloatingPoint(std::string_view function, Var x);
Status ExpectImages(std::string_view function, Var x);  // (N, C, H, W)

// In [0, x's number of dims).
StatusOr<int64_t> DimOf(std::string_view function, Var x, int64_t dim);
// Returns distinct dims in ascending order; an empty list means all dims of x.
StatusOr<Dims> DimsOf(std::string_view function, Var x, const Dims& dims);

// Error unless x's dtype can hold the number beside it.
Status CheckNumberBeside(std::string_view function, Var x, double number);

// Error unless an operand of a function of x, an index, can be used, and is a vector.
Status CheckVector(std::string_view function, Var x, Var index);

// x as a matrix whose rows are the elements along a dim, and such rows as a tensor of the shape.
Var RowsAlong(Var x, int64_t dim);
Var FromRows(Var rows, const Shape& shape, int64_t dim);

// A value for each channel, (C), with dims of size 1 for a tensor (B, C, ...) of so many dims.
Var PerChannel(Var value, int num_dims);

// Returns the result of `build() -> StatusOr<Var>`; the trace keeps its error, which names the
// function. x must be usable.
template <typename Build>
Var Checked(std::string_view function, Var x, const Build& build) {
  Trace& trace = Trace::Of(function);
  const Trace::Function called(function);
  if (const Status usable = trace.CheckUsable(x); !usable.ok()) {
    return trace.Fail(usable.WithContext(std::string(function)));
  }
  StatusOr<Var> result = build();
  return result.ok() ? *result : trace.Fail(result.status());
}

}  // namespace zg::nn
