#include "framework/kernels/cpu/column_sum.h"

#include <algorithm>

#include "framework/kernels/cpu/lanes.h"
#include "framework/kernels/cpu/multiversion.h"

namespace zg {
namespace {

// Rows added in a tree before they meet the running sum, which is then read and written once for
// all of them.
constexpr int64_t kRows = 8;
// Columns whose running sums stay in the first-level cache.
constexpr int64_t kColumns = 2048;

ZG_MULTIVERSION void AddEightRows(const float* x, int64_t stride, int64_t count, float* sum) {
  const float* const x0 = x;
  const float* const x1 = x + stride;
  const float* const x2 = x + 2 * stride;
  const float* const x3 = x + 3 * stride;
  const float* const x4 = x + 4 * stride;
  const float* const x5 = x + 5 * stride;
  const float* const x6 = x + 6 * stride;
  const float* const x7 = x + 7 * stride;
  ZG_INDEPENDENT
  for (int64_t i = 0; i < count; ++i) {
    sum[i] += ((x0[i] + x1[i]) + (x2[i] + x3[i])) + ((x4[i] + x5[i]) + (x6[i] + x7[i]));
  }
}

ZG_MULTIVERSION void AddRow(const float* x, int64_t count, float* sum) {
  ZG_INDEPENDENT
  for (int64_t i = 0; i < count; ++i) sum[i] += x[i];
}

ZG_MULTIVERSION float SumVector(const float* x, int64_t count) {
  return SumTerms(
      count, [=](const auto& load) __attribute__((always_inline)) { return load(x, 0.0f); });
}

}  // namespace

void ColumnSum(const float* x, int64_t rows, int64_t columns, float* sum) {
  if (columns == 1) {
    sum[0] = SumVector(x, rows);
    return;
  }
  for (int64_t begin = 0; begin < columns; begin += kColumns) {
    const int64_t count = std::min(kColumns, columns - begin);
    float* const part = sum + begin;
    std::fill_n(part, count, 0.0f);
    int64_t row = 0;
    for (; row + kRows <= rows; row += kRows) {
      AddEightRows(x + row * columns + begin, columns, count, part);
    }
    for (; row < rows; ++row) AddRow(x + row * columns + begin, count, part);
  }
}

}  // namespace zg
