// Term: a value in a formula that is written out as ops. Operators, the functions named after the
// rows of elementwise.inc and those below append a node each. A null value, after an error that the
// builder keeps, gives null values.
//
//   const Term n = (x - AsColumn(mean)) * AsColumn(rstd);
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "framework/ir/builder.h"
#include "framework/ops/broadcasting.h"

namespace zg {

struct Term {
  ir::Builder* builder = nullptr;
  ir::Value* value = nullptr;
};

inline Term Append(const char* op, Term a, ir::Attributes attributes = {}) {
  return {a.builder, a.builder->Op(op, {a.value}, std::move(attributes))};
}
inline Term Append(const char* op, Term a, Term b, ir::Attributes attributes = {}) {
  return {a.builder, a.builder->Op(op, {a.value, b.value}, std::move(attributes))};
}

#define ZG_UNARY(Name, name, ...) \
  inline Term Name(Term x) { return Append(name, x); }
#define ZG_UNARY_WITH(Name, name, x, attribute, ...) \
  inline Term Name(Term x, double value) { return Append(name, x, {{#attribute, value}}); }
#define ZG_BINARY(Name, name, ...) \
  inline Term Name(Term a, Term b) { return Append(name, a, b); }
#define ZG_BINARY_WITH(Name, name, a, b, attribute, ...) \
  inline Term Name(Term a, Term b, double value) {       \
    return Append(name, a, b, {{#attribute, value}});    \
  }
#include "framework/ops/elementwise.inc"

inline Term operator+(Term a, Term b) { return Add(a, b); }
inline Term operator-(Term a, Term b) { return Subtract(a, b); }
inline Term operator*(Term a, Term b) { return Multiply(a, b); }
inline Term operator/(Term a, Term b) { return Divide(a, b); }
inline Term operator*(double factor, Term x) { return Scale(x, factor); }
inline Term operator-(Term x) { return Scale(x, -1.0); }

// x as another dtype.
inline Term As(DType dtype, Term x) {
  if (x.value == nullptr || x.value->type.dtype == dtype) return x;
  return Append("cast", x, {{"dtype", dtype}});
}

// A constant in derivatives.
inline Term Stop(Term x) { return Append("stop_gradient", x); }

// x (..., C) -> (..., 1): its sum or average over the last dim.
inline Term RowSum(Term x, double factor = 1.0) {
  if (x.value == nullptr) return x;
  const int64_t last = x.value->type.shape.num_dims() - 1;
  return Append("sum", x,
                {{"dims", std::vector<int64_t>{last}}, {"keep_dims", true}, {"factor", factor}});
}
inline Term RowAverage(Term x) {
  return x.value == nullptr ? x : RowSum(x, 1.0 / static_cast<double>(x.value->type.shape.dim(-1)));
}

// x with `count` more dims of size 1 at the end, for broadcasting.
inline Term WithLastDims(Term x, int count) {
  if (x.value == nullptr || count == 0) return x;
  std::vector<int64_t> dims;
  for (int i = 0; i < count; ++i) dims.push_back(x.value->type.shape.num_dims() + i);
  return Append("expand", x, {{"dims", dims}, {"sizes", std::vector<int64_t>(count, 1)}});
}
inline Term AsColumn(Term row) { return WithLastDims(row, 1); }

// x summed over the dims that broadcasting repeats in an operand of the shape `shape`.
inline Term SumTo(const Shape& shape, Term x) {
  if (x.value == nullptr) return x;
  return {x.builder, SumToType(*x.builder, x.value, {x.value->type.dtype, shape})};
}

}  // namespace zg
