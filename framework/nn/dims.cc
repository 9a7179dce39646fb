#include "framework/nn/dims.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace zg::nn {

std::string Caller(std::string_view function, Var x) {
  return fmt::format("{} of %{} {}", function, x.value()->name, x.value()->type.ToString());
}

Status ExpectFloatingPoint(std::string_view function, Var x) {
  if (IsFloat(x.dtype())) return Status::Ok();
  return InvalidArgument("{}: expected floating-point numbers", Caller(function, x));
}

Status ExpectImages(std::string_view function, Var x) {
  if (x.shape().num_dims() == 4) return Status::Ok();
  return InvalidArgument("{}: expected the dims (samples, channels, height, width)",
                         Caller(function, x));
}

StatusOr<int64_t> DimOf(std::string_view function, Var x, int64_t dim) {
  const int64_t num_dims = x.shape().num_dims();
  if (dim >= -num_dims && dim < num_dims) return dim < 0 ? dim + num_dims : dim;
  if (num_dims == 0) {
    return InvalidArgument("{}: got dim {}, but it has no dims", Caller(function, x), dim);
  }
  return InvalidArgument("{}: got dim {}, expected one from {} to {}", Caller(function, x), dim,
                         -num_dims, num_dims - 1);
}

StatusOr<Dims> DimsOf(std::string_view function, Var x, const Dims& dims) {
  Dims result;
  for (const int64_t dim : dims) {
    ZG_ASSIGN_OR_RETURN(const int64_t own, DimOf(function, x, dim));
    result.push_back(own);
  }
  std::sort(result.begin(), result.end());
  if (std::adjacent_find(result.begin(), result.end()) != result.end()) {
    return InvalidArgument("{}: got dims [{}], which name one of them twice", Caller(function, x),
                           fmt::join(dims, ","));
  }
  if (!dims.empty()) return result;
  for (int64_t dim = 0; dim < x.shape().num_dims(); ++dim) result.push_back(dim);
  return result;
}

Var RowsAlong(Var x, int64_t dim) {
  int64_t elements = 1;  // of a row
  for (int64_t other = 0; other < x.shape().num_dims(); ++other) {
    if (other != dim) elements *= x.dim(static_cast<int>(other));
  }
  return reshape(transpose(x, 0, dim), {x.dim(dim), elements});
}

Var FromRows(Var rows, const Shape& shape, int64_t dim) {
  Dims in_front = shape.dims();
  std::swap(in_front[0], in_front[static_cast<size_t>(dim)]);
  return transpose(reshape(rows, in_front), 0, dim);
}

Var PerChannel(Var value, int num_dims) {
  Dims shape(num_dims - 1, 1);
  shape[0] = value.dim(0);
  return reshape(value, shape);
}

Status CheckNumberBeside(std::string_view function, Var x, double number) {
  if (CanHold(x.dtype(), number)) return Status::Ok();
  return InvalidArgument("{}: got {}, expected a number that {} can hold", Caller(function, x),
                         number, DTypeName(x.dtype()));
}

Status CheckVector(std::string_view function, Var x, Var index) {
  ZG_RETURN_IF_ERROR(
      Trace::Of(function).CheckUsable(index).WithContext(fmt::format("{}: index", function)));
  if (index.shape().num_dims() == 1) return Status::Ok();
  return InvalidArgument("{}: got the index %{} {}, expected a vector", Caller(function, x),
                         index.value()->name, index.value()->type.ToString());
}

}  // namespace zg::nn
