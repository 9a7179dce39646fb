#include "framework/nn/indexing.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

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
    ZG_RETURN_IF_ERROR(nn::CheckVector("index_select", x, index));
    ZG_ASSIGN_OR_RETURN(const int64_t own, DimOf("index_select", x, dim));
    Shape shape = x.shape();
    shape.set_dim(static_cast<int>(own), index.dim(0));
    if (!IsFloat(x.dtype())) {
      Dims of_vector(x.shape().num_dims(), 1);
      of_vector[own] = index.dim(0);
      return gather(x, own, expand(reshape(index, of_vector), shape.dims()));
    }
    return nn::FromRows(embedding(index, nn::RowsAlong(x, own)), shape, own);
  });
}

Var searchsorted(Var sorted, Var values, bool right) {
  return nn::append("searchsorted", {sorted, values}, {{"right", right}});
}

Var tril(Var x, int64_t diagonal) { return Triangle("tril", x, diagonal, /*lower=*/true); }
Var triu(Var x, int64_t diagonal) { return Triangle("triu", x, diagonal, /*lower=*/false); }

Var diagonal(Var x, int64_t offset) {
  return Checked("diagonal", x, [&]() -> StatusOr<Var> {
    const int num_dims = x.shape().num_dims();
    const int64_t rows = num_dims < 2 ? 0 : x.dim(-2), columns = num_dims < 2 ? 0 : x.dim(-1);
    const int64_t first_row = std::max<int64_t>(0, -offset);
    const int64_t first_column = std::max<int64_t>(0, offset);
    const int64_t count = std::min(rows - first_row, columns - first_column);
    if (count < 1) {
      return InvalidArgument(
          "{}: got the offset {}, expected that of a diagonal of the last two dims",
          Caller("diagonal", x), offset);
    }
    const int64_t start = first_row * columns + first_column;
    return slice(flatten(x, -2), -1, start, start + (count - 1) * (columns + 1) + 1, columns + 1);
  });
}

Var diag_embed(Var x, int64_t offset) {
  return Checked("diag_embed", x, [&]() -> StatusOr<Var> {
    if (x.shape().num_dims() == 0) {
      return InvalidArgument("{}: expected at least one dim", Caller("diag_embed", x));
    }
    const Var places = arange(x.dim(-1));
    Var y = where(equal(unsqueeze(places, 1), places), unsqueeze(x, -1), 0.0);
    if (offset == 0) return y;
    const int64_t before = std::max<int64_t>(0, offset), after = std::max<int64_t>(0, -offset);
    return pad(pad(y, -1, before, after), -2, after, before);
  });
}

Var flip(Var x, int64_t dim) {
  return Checked("flip", x, [&]() -> StatusOr<Var> {
    ZG_ASSIGN_OR_RETURN(const int64_t own, DimOf("flip", x, dim));
    return nn::append("flip", {x}, {{"dim", own}});
  });
}

}  // namespace zg
