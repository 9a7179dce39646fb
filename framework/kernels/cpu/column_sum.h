// Sums a matrix over its rows; the order of additions depends only on the number of rows and their
// parts, which are summed one by one and then pairwise. `threads`, which may be null, share the
// columns.
#pragma once

#include <cstdint>

#include "framework/base/threads.h"
#include "framework/kernels/cpu/row_parts.h"
#include "framework/tensor/dtype.h"

namespace zg {

// sum[c] = sum over r of x[r * columns + c], both of `dtype`; added up in f32. Several parts only in
// f32.
void ColumnSum(DType dtype, const void* x, const RowParts& parts, int64_t columns, void* sum,
               Threads* threads);

// The same without rounding to 16 bits at the end.
void ColumnSumToF32(DType dtype, const void* x, int64_t rows, int64_t columns, float* sum,
                    Threads* threads);

// The sums of `rows` rows of up to kShortRow elements: each has the bits of the sum of one column of
// these elements.
inline constexpr int64_t kShortRow = 16;
void ShortRowSumsToF32(DType dtype, const void* x, int64_t rows, int64_t columns, float* sums);

}  // namespace zg
