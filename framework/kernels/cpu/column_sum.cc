#include "framework/kernels/cpu/column_sum.h"

#include <algorithm>
#include <type_traits>

#include "framework/kernels/cpu/convert.h"
#include "framework/kernels/cpu/lanes.h"
#include "framework/kernels/cpu/multiversion.h"
#include "framework/kernels/cpu/sharing.h"
#include "framework/tensor/half.h"

namespace zg {
namespace {

// Rows that are added in a tree before they are added to the running sum, which is then read and
// written once for all of them.
constexpr int64_t kRows = 8;
// Columns whose running sums stay in the first-level cache.
constexpr int64_t kColumns = 2048;

template <typename T>
ZG_INLINE void AddEightRowsOf(const T* x, int64_t stride, int64_t count, float* sum) {
  const T* const x0 = x;
  const T* const x1 = x + stride;
  const T* const x2 = x + 2 * stride;
  const T* const x3 = x + 3 * stride;
  const T* const x4 = x + 4 * stride;
  const T* const x5 = x + 5 * stride;
  const T* const x6 = x + 6 * stride;
  const T* const x7 = x + 7 * stride;
  ZG_INDEPENDENT
  for (int64_t i = 0; i < count; ++i) {
    sum[i] += ((ToF32(x0[i]) + ToF32(x1[i])) + (ToF32(x2[i]) + ToF32(x3[i]))) +
              ((ToF32(x4[i]) + ToF32(x5[i])) + (ToF32(x6[i]) + ToF32(x7[i])));
  }
}
void AddEightRows(const float* x, int64_t stride, int64_t count, float* sum) {
  Multiversion([=]() ZG_VERSION { AddEightRowsOf(x, stride, count, sum); });
}
void AddEightRows(const BFloat16* x, int64_t stride, int64_t count, float* sum) {
  Multiversion([=]() ZG_VERSION { AddEightRowsOf(x, stride, count, sum); });
}
void AddEightRows(const Float16* x, int64_t stride, int64_t count, float* sum) {
  Multiversion([=]() ZG_VERSION { AddEightRowsOf(x, stride, count, sum); });
}

template <typename T>
void AddRow(const T* x, int64_t count, float* sum) {
  for (int64_t i = 0; i < count; ++i) sum[i] += ToF32(x[i]);
}
void AddRow(const float* x, int64_t count, float* sum) {
  Multiversion([=]() ZG_VERSION {
    ZG_INDEPENDENT
    for (int64_t i = 0; i < count; ++i) sum[i] += x[i];
  });
}

float SumVector(const float* x, int64_t count) {
  return Multiversion([=]() ZG_VERSION {
    return SumTerms(
        count, [=](const auto& load) __attribute__((always_inline)) { return load(x, 0.0f); });
  });
}

// Writes to `sum` in f32, the sum of the columns [begin, begin + count).
template <typename T>
void SumColumns(const T* x, int64_t rows, int64_t columns, int64_t begin, int64_t count,
                float* sum) {
  std::fill_n(sum, count, 0.0f);
  int64_t row = 0;
  for (; row + kRows <= rows; row += kRows) {
    AddEightRows(x + row * columns + begin, columns, count, sum);
  }
  for (; row < rows; ++row) AddRow(x + row * columns + begin, count, sum);
}

// A column of 16-bit numbers, widened block by block, is summed like one in f32.
template <typename T>
float SumVector(const T* x, int64_t rows) {
  constexpr int64_t kBlock = 2048;
  static_assert(kBlock % (4 * kLanes) == 0);
  Lanes sums[4] = {};
  float block[kBlock];
  for (int64_t begin = 0; begin < rows; begin += kBlock) {
    const int64_t count = std::min(kBlock, rows - begin);
    for (int64_t i = 0; i < count; ++i) block[i] = ToF32(x[begin + i]);
    std::fill_n(block + count, kBlock - count, 0.0f);
    for (int64_t i = 0; i < kBlock; i += kLanes) sums[i / kLanes % 4] += LoadLanes(block + i);
  }
  return SumOfLanes((sums[0] + sums[1]) + (sums[2] + sums[3]));
}

// Calls sum(begin, count) for groups of columns.
template <typename Sum>
void ForColumns(int64_t rows, int64_t columns, Threads* threads, const Sum& sum) {
  ForRanges(threads, columns, kElementUnit, rows, [&](int64_t begin, int64_t end, int) {
    for (; begin < end; begin += kColumns) sum(begin, std::min(kColumns, end - begin));
  });
}

template <typename T>
void SumAllColumns(const T* x, int64_t rows, int64_t columns, float* sum, Threads* threads) {
  if (columns == 1) {
    sum[0] = SumVector(x, rows);
    return;
  }
  ForColumns(rows, columns, threads, [&](int64_t begin, int64_t count) {
    SumColumns(x, rows, columns, begin, count, sum + begin);
  });
}

template <typename T>
void SumAndRound(DType dtype, const T* x, int64_t rows, int64_t columns, T* sum, Threads* threads) {
  if (columns == 1) {
    sum[0] = FromF32<T>(SumVector(x, rows));
    return;
  }
  ForColumns(rows, columns, threads, [&](int64_t begin, int64_t count) {
    float wide[kColumns];
    SumColumns(x, rows, columns, begin, count, wide);
    ConvertFloats(DType::kF32, wide, dtype, sum + begin, count);
  });
}

}  // namespace

void ColumnSumToF32(DType dtype, const void* x, int64_t rows, int64_t columns, float* sum,
                    Threads* threads) {
  WithFloatType(dtype, [&](auto zero) {
    SumAllColumns(static_cast<const decltype(zero)*>(x), rows, columns, sum, threads);
  });
}

void ColumnSum(DType dtype, const void* x, int64_t rows, int64_t columns, void* sum,
               Threads* threads) {
  WithFloatType(dtype, [&](auto zero) {
    using T = decltype(zero);
    if constexpr (std::is_same_v<T, float>) {
      SumAllColumns(static_cast<const float*>(x), rows, columns, static_cast<float*>(sum), threads);
    } else {
      SumAndRound(dtype, static_cast<const T*>(x), rows, columns, static_cast<T*>(sum), threads);
    }
  });
}

}  // namespace zg
