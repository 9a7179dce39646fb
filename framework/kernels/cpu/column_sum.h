// Sums a matrix over its rows; the order of additions depends on the number of rows only.
#pragma once

#include <cstdint>

namespace zg {

// sum[c] = sum over r of x[r * columns + c].
void ColumnSum(const float* x, int64_t rows, int64_t columns, float* sum);

}  // namespace zg
