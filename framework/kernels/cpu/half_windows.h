// Matrices of the windows of bf16 images, for the methods that multiply pairs or tiles of bf16
// (gemm_method.h): they are copied out a block at a time, since such methods take matrices as stored.
#pragma once

#include <cstdint>

#include "framework/kernels/cpu/gemm_method.h"
#include "framework/tensor/half.h"

namespace zg {

// The method for operands of the dtype; null unless they are bf16 and the processor multiplies such.
const GemmMethod* HalfMethod(DType dtype);

// A block of windows has so many k at most, a multiple of every method's depth unit.
inline constexpr int64_t kHalfDepth = 1024;

// Element (k, j) at data[rows[k] + columns[j]].
struct HalfMatrix {
  const BFloat16* data = nullptr;
  const int64_t* rows = nullptr;
  const int64_t* columns = nullptr;
  int64_t run = 1;  // of RunOf(columns, ...)
};
// To (depth, columns).
void CopyWindows(const HalfMatrix& matrix, int64_t depth, int64_t columns, BFloat16* out);

// Floats that take the space of so many bf16.
constexpr int64_t FloatsOfHalves(int64_t count) { return CeilDiv(count, 2); }

}  // namespace zg
