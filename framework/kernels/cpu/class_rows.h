// Helpers of kernels that read logits: a row of classes in f32, and the check of its target.
#pragma once

#include <cstdint>

#include "framework/kernels/cpu/convert.h"

namespace zg {

// A row of a matrix, widened into `row_in_f32` if it is in 16 bits.
inline const float* RowInF32(DType dtype, const void* matrix, int64_t row, int64_t columns,
                             float* row_in_f32) {
  if (dtype == DType::kF32) return static_cast<const float*>(matrix) + row * columns;
  ConvertFloats(dtype, static_cast<const char*>(matrix) + row * columns * SizeOf(dtype),
                DType::kF32, row_in_f32, columns);
  return row_in_f32;
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
