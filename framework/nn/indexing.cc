#include "framework/nn/indexing.h"

#include <fmt/format.h>

#include "framework/nn/conditions.h"
#include "framework/nn/dims.h"
#include "framework/nn/functions.h"

namespace zg {

using nn::Caller;
using nn::Checked;
using nn::DimOf;

namespace {

// Zeros where column - row is on the far side of the diagonal.
Var Triangle(const char* function, Var x, int64_t diagonal, bool lower) {
  return Checked(function, x, [&]() -> StatusOr<Var> {
    if (x.shape().num_dims() < 2) {
      return InvalidArgument("{}: expected at least two dims", Caller(function, x));
    }
    const Var diagonals = unsqueeze(arange(x.dim(-2), diagonal), 1);
    const Var columns = arange(x.dim(-1));
    const Var stays = lower ? columns <= diagonals : columns >= diagonals;
    return where(stays, x, 0.0);
  });
}

}  // namespace

Var arange(int64_t count, int64_t start, int64_t step) {
  if (count < 1) {
    return nn::Trace::Of("arange").Fail(
        InvalidArgument("arange: got {} elements, expected at least 1", count));
  }
  return nn::append("iota", {}, {{"size", count}, {"start", start}, {"step", step}});
}

Var one_hot(Var ids, int64_t num_classes) {
  return Checked("one_hot", ids, [&]() -> StatusOr<Var> {
    if (ids.dtype() != DType::kI64) {
      return InvalidArgument("{}: expected ids of dtype i64", Caller("one_hot", ids));
    }
    return to(equal(unsqueeze(ids, -1), arange(num_classes)), DType::kF32);
  });
}

Var gather(Var x, int64_t dim, Var index) {
  return Checked("gather", x, [&]() -> StatusOr<Var> {
    ZG_RETURN_IF_ERROR(nn::Trace::Of("gather").CheckUsable(index).WithContext("gather: index"));
    ZG_ASSIGN_OR_RETURN(const int64_t own, DimOf("gather", x, dim));
    Var part = x;
    const int num_dims = x.shape().num_dims();
    for (int other = 0; other < num_dims && index.shape().num_dims() == num_dims; ++other) {
      if (other != own && index.dim(other) < x.dim(other)) {
        part = slice(part, other, 0, index.dim(other));
      }
    }
    return nn::append("gather", {part, index}, {{"dim", own}});
  });
}

Var index_select(Var x, int64_t dim, Var index) {
  return Checked("index_select", x, [&]() -> StatusOr<Var> {
    ZG_RETURN_IF_ERROR(
        nn::Trace::Of("index_select").CheckUsable(index).WithContext("index_select: index"));
    ZG_ASSIGN_OR_RETURN(const int64_t own, DimOf("index_select", x, dim));
    if (index.shape().num_dims() != 1) {
      return InvalidArgument("{}: got the index %{} {}, expected a vector",
                             Caller("index_select", x), index.value()->name,
                             index.value()->type.ToString());
    }
    const Var in_front = transpose(x, 0, own);
    Dims dims = in_front.shape().dims();
    const Var rows = reshape(in_front, {dims[0], x.shape().num_elements() / dims[0]});
    dims[0] = index.dim(0);
    return transpose(reshape(embedding(index, rows), dims), 0, own);
  });
}

Var tril(Var x, int64_t diagonal) { return Triangle("tril", x, diagonal, /*lower=*/true); }
Var triu(Var x, int64_t diagonal) { return Triangle("triu", x, diagonal, /*lower=*/false); }

Var flip(Var x, int64_t dim) {
  return Checked("flip", x, [&]() -> StatusOr<Var> {
    ZG_ASSIGN_OR_RETURN(const int64_t own, DimOf("flip", x, dim));
    return nn::append("flip", {x}, {{"dim", own}});
  });
}

}  // namespace zg
