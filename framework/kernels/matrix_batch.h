// The square matrices of a kernel of linear algebra, and what it says of one that it cannot use.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "framework/tensor/shape.h"

namespace zg {

// (count, n, n).
struct MatrixBatch {
  explicit MatrixBatch(const Shape& shape) : n(shape.dim(-1)) {
    for (int i = 0; i + 2 < shape.num_dims(); ++i) count *= shape.dim(i);
  }
  int64_t elements() const { return n * n; }  // of a matrix

  int64_t count = 1;
  int64_t n;
};

inline constexpr char kSingular[] = "singular";
inline constexpr char kNotDefinite[] = "not positive definite";

inline std::string BadMatrixText(std::string_view op, std::string_view what, int64_t matrix,
                                 int64_t count) {
  return fmt::format("{}: matrix {} of the {} is {}", op, matrix, count, what);
}

}  // namespace zg
