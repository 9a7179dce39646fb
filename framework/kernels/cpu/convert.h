// Converts arrays of floating-point numbers from one dtype to another.
#pragma once

#include <cstdint>

#include "framework/tensor/dtype.h"

namespace zg {

// Converts between any two of f32, bf16 and f16; rounds to 16 bits to the nearest, ties to even.
// The arrays must not overlap.
void ConvertFloats(DType from, const void* source, DType to, void* target, int64_t count);

// Rounds a matrix in f32 to `to` (bf16 or f16); strides in elements.
void RoundRows(const float* source, int64_t source_stride, int64_t rows, int64_t columns, DType to,
               void* target, int64_t target_stride);

// target += source, for submatrices of one floating-point dtype whose rows are `stride` elements
// apart; sums are rounded.
void AddRows(DType dtype, const void* source, int64_t rows, int64_t columns, int64_t stride,
             void* target);

// Rounds every element to the value that it would have after a conversion to `dtype` and back.
void RoundFloats(DType dtype, float* values, int64_t count);

}  // namespace zg
