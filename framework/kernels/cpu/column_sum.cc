#include "framework/kernels/cpu/column_sum.h"

#include <algorithm>
#include <type_traits>

#include "framework/base/check.h"
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
// Long sums are those of runs of so many rows, or elements of one column: a running sum of all would
// lose the digits that it has more than its terms.
constexpr int64_t kRunRows = 4096;
constexpr int64_t kRunElements = int64_t{1} << 16;

template <typename T>
ZG_INLINE void AddEightRowsOf(const T* const* x, int64_t count, float* sum) {
  const T* const x0 = x[0];
  const T* const x1 = x[1];
  const T* const x2 = x[2];
  const T* const x3 = x[3];
  const T* const x4 = x[4];
  const T* const x5 = x[5];
  const T* const x6 = x[6];
  const T* const x7 = x[7];
  ZG_INDEPENDENT
  for (int64_t i = 0; i < count; ++i) {
    sum[i] += ((ToF32(x0[i]) + ToF32(x1[i])) + (ToF32(x2[i]) + ToF32(x3[i]))) +
              ((ToF32(x4[i]) + ToF32(x5[i])) + (ToF32(x6[i]) + ToF32(x7[i])));
  }
}
void AddEightRows(const float* const* x, int64_t count, float* sum) {
  Multiversion([=]() ZG_VERSION { AddEightRowsOf(x, count, sum); });
}
void AddEightRows(const BFloat16* const* x, int64_t count, float* sum) {
  Multiversion([=]() ZG_VERSION { AddEightRowsOf(x, count, sum); });
}
void AddEightRows(const Float16* const* x, int64_t count, float* sum) {
  Multiversion([=]() ZG_VERSION { AddEightRowsOf(x, count, sum); });
}

template <typename T>
void AddRow(const T* x, int64_t count, float* sum) {
  Multiversion([=]() ZG_VERSION {
    ZG_INDEPENDENT
    for (int64_t i = 0; i < count; ++i) sum[i] += ToF32(x[i]);
  });
}

template <typename T>
float SumRun(const T* x, int64_t count) {
  return Multiversion([=]() ZG_VERSION {
    return SumTerms(
        count, [=](const auto& load) __attribute__((always_inline)) { return load(x, 0.0f); });
  });
}

template <typename T>
float SumVector(const T* x, int64_t count) {
  float sum = 0.0f;
  for (int64_t begin = 0; begin < count; begin += kRunElements) {
    sum += SumRun(x + begin, std::min(kRunElements, count - begin));
  }
  return sum;
}

// Rows of a matrix.
template <typename T>
struct Rows {
  const T* x;
  RowParts parts;
  int64_t columns;

  const T* At(int64_t part, int64_t row) const { return x + parts.Row(part, row) * columns; }
};

// Writes to `sum` in f32, the sum of the columns [begin, begin + count) of rows [row, end) of a part.
template <typename T>
void SumColumnsOfRun(const Rows<T>& rows, int64_t part, int64_t row, int64_t end, int64_t begin,
                     int64_t count, float* sum) {
  std::fill_n(sum, count, 0.0f);
  for (; row + kRows <= end; row += kRows) {
    const T* eight[kRows];
    for (int64_t i = 0; i < kRows; ++i) eight[i] = rows.At(part, row + i) + begin;
    AddEightRows(eight, count, sum);
  }
  for (; row < end; ++row) AddRow(rows.At(part, row) + begin, count, sum);
}

// The same for all rows, at most kColumns columns.
template <typename T>
void SumColumns(const Rows<T>& rows, int64_t part, int64_t begin, int64_t count, float* sum) {
  const int64_t num_rows = rows.parts.rows();
  SumColumnsOfRun(rows, part, 0, std::min(kRunRows, num_rows), begin, count, sum);
  for (int64_t row = kRunRows; row < num_rows; row += kRunRows) {
    float of_run[kColumns];
    SumColumnsOfRun(rows, part, row, std::min(row + kRunRows, num_rows), begin, count, of_run);
    AddInto(of_run, count, sum);
  }
}

// The same of `num_parts` parts, a power of two, at most kColumns columns.
template <typename T>
void SumParts(const Rows<T>& rows, int64_t part, int64_t num_parts, int64_t begin, int64_t count,
              float* sum) {
  if (num_parts == 1) return SumColumns(rows, part, begin, count, sum);
  float rest[kColumns];
  SumParts(rows, part, num_parts / 2, begin, count, sum);
  SumParts(rows, part + num_parts / 2, num_parts / 2, begin, count, rest);
  AddInto(rest, count, sum);
}

// A lane for each row, in the order of SumOfLanes.
template <typename T>
void SumShortRows(const T* x, int64_t rows, int64_t columns, float* sums) {
  static_assert(kShortRow == kLanes);
  Multiversion([=]() ZG_VERSION {
    for (int64_t first = 0; first < rows; first += kLanes) {
      const int64_t count = std::min<int64_t>(kLanes, rows - first);
      const T* const from = x + first * columns;
      float lanes[kShortRow][kLanes] = {};
      for (int64_t i = 0; i < columns; ++i) {
        // A sum with the zeros behind the row: without a minus.
        for (int64_t r = 0; r < count; ++r) lanes[i][r] = ToF32(from[r * columns + i]) + 0.0f;
      }
      for (int64_t half = kShortRow / 2; half > 0; half /= 2) {
        for (int64_t i = 0; i < std::min(half, columns - half); ++i) {
          for (int64_t r = 0; r < kLanes; ++r) lanes[i][r] += lanes[i + half][r];
        }
      }
      std::copy_n(lanes[0], count, sums + first);
    }
  });
}

// The runs of a column of several parts are gathered block by block, and summed like one run.
template <typename T>
float SumVector(const Rows<T>& x, int64_t part) {
  if (x.parts.num_parts() == 1) return SumVector(x.x, x.parts.rows());
  constexpr int64_t kBlock = 2048;
  static_assert(kBlock % (4 * kLanes) == 0 && kRunElements % kBlock == 0);
  float block[kBlock];
  const int64_t rows = x.parts.rows();
  float sum = 0.0f;
  for (int64_t run = 0; run < rows; run += kRunElements) {
    Lanes sums[4] = {};
    const int64_t end = std::min(run + kRunElements, rows);
    for (int64_t begin = run; begin < end; begin += kBlock) {
      const int64_t count = std::min(kBlock, end - begin);
      for (int64_t i = 0; i < count; ++i) block[i] = ToF32(*x.At(part, begin + i));
      std::fill_n(block + count, kBlock - count, 0.0f);
      for (int64_t i = 0; i < kBlock; i += kLanes) sums[i / kLanes % 4] += LoadLanes(block + i);
    }
    sum += SumOfLanes((sums[0] + sums[1]) + (sums[2] + sums[3]));
  }
  return sum;
}

// The sum of a matrix of one column.
template <typename T>
float SumVectors(const Rows<T>& x, int64_t part, int64_t num_parts) {
  if (num_parts > 1) {
    return SumVectors(x, part, num_parts / 2) + SumVectors(x, part + num_parts / 2, num_parts / 2);
  }
  return SumVector(x, part);
}

// Calls sum(begin, count) for groups of columns.
template <typename Sum>
void ForColumns(int64_t rows, int64_t columns, Threads* threads, const Sum& sum) {
  ForRanges(threads, columns, kElementUnit, rows, [&](int64_t begin, int64_t end, int) {
    for (; begin < end; begin += kColumns) sum(begin, std::min(kColumns, end - begin));
  });
}

template <typename T>
void SumAllColumns(const Rows<T>& rows, float* sum, Threads* threads) {
  const int64_t num_parts = rows.parts.num_parts();
  if (rows.columns == 1) {
    sum[0] = SumVectors(rows, 0, num_parts);
    return;
  }
  ForColumns(rows.parts.rows() * num_parts, rows.columns, threads,
             [&](int64_t begin, int64_t count) {
               SumParts(rows, 0, num_parts, begin, count, sum + begin);
             });
}

template <typename T>
void SumAndRound(DType dtype, const Rows<T>& rows, T* sum, Threads* threads) {
  if (rows.columns == 1) {
    sum[0] = FromF32<T>(SumVector(rows, 0));
    return;
  }
  ForColumns(rows.parts.rows(), rows.columns, threads, [&](int64_t begin, int64_t count) {
    float wide[kColumns];
    SumColumns(rows, 0, begin, count, wide);
    ConvertFloats(DType::kF32, wide, dtype, sum + begin, count);
  });
}

}  // namespace

void ColumnSumToF32(DType dtype, const void* x, int64_t rows, int64_t columns, float* sum,
                    Threads* threads) {
  WithFloatType(dtype, [&](auto zero) {
    using T = decltype(zero);
    SumAllColumns(Rows<T>{static_cast<const T*>(x), RowParts(rows), columns}, sum, threads);
  });
}

void ShortRowSumsToF32(DType dtype, const void* x, int64_t rows, int64_t columns, float* sums) {
  WithFloatType(dtype, [&](auto zero) {
    using T = decltype(zero);
    SumShortRows(static_cast<const T*>(x), rows, columns, sums);
  });
}

void ColumnSum(DType dtype, const void* x, const RowParts& parts, int64_t columns, void* sum,
               Threads* threads) {
  WithFloatType(dtype, [&](auto zero) {
    using T = decltype(zero);
    const Rows<T> rows = {static_cast<const T*>(x), parts, columns};
    if constexpr (std::is_same_v<T, float>) {
      SumAllColumns(rows, static_cast<float*>(sum), threads);
    } else {
      ZG_CHECK(parts.num_parts() == 1, "a sum of {} in {} parts", DTypeName(dtype),
               parts.num_parts());
      SumAndRound(dtype, rows, static_cast<T*>(sum), threads);
    }
  });
}

}  // namespace zg
