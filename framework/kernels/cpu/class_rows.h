// Helpers of kernels that read logits: a row of classes in f32, and the check of its target.
#pragma once

#include <cstdint>

#include "framework/kernels/cpu/convert.h"

namespace zg {

// Rows of a matrix from `first` on, widened into `rows_in_f32` if they are in 16 bits.
inline const float* RowsInF32(DType dtype, const void* matrix, int64_t first, int64_t rows,
                              int64_t columns, float* rows_in_f32) {
  if (dtype == DType::kF32) return static_cast<const float*>(matrix) + first * columns;
  ConvertFloats(dtype, static_cast<const char*>(matrix) + first * columns * SizeOf(dtype),
                DType::kF32, rows_in_f32, rows * columns);
  return rows_in_f32;
}

inline Status CheckTarget(const char* op, int64_t row, int64_t target, int64_t columns) {
  if (target >= 0 && target < columns) return Status::Ok();
  return InvalidArgument("{}: the target at position {} is {}, the logits have classes 0 to {}{}",
                         op, row, target, columns - 1,
                         target == -100
                             ? "\n  hint: cross_entropy with ClassLossOptions leaves out rows "
                               "whose target is ignore_index, -100"
                             : "");
}

}  // namespace zg
