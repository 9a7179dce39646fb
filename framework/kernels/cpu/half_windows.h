// The windows of bf16 images as operands of the methods that multiply pairs or tiles of bf16
// (gemm_method.h): blocks of their matrix are copied out (CopyIndexed), since such methods take matrices
// as stored.
#pragma once

#include <cstdint>

#include "framework/kernels/cpu/gemm_method.h"
#include "framework/tensor/dtype.h"

namespace zg {

// The method for operands of the dtype; null unless they are bf16 and the processor multiplies such.
const GemmMethod* HalfMethod(DType dtype);

// A block of windows has so many k at most, a multiple of every method's depth unit.
inline constexpr int64_t kHalfDepth = 1024;

// Floats that take the space of so many bf16.
constexpr int64_t FloatsOfHalves(int64_t count) { return CeilDiv(count, 2); }

}  // namespace zg
