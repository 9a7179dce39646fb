// Sums over rows, column by column, as gradients of weights that all rows share. The order is a
// function of the number of rows alone: rows are added up in blocks, and blocks then, which rounds
// less than one long sum.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "framework/kernels/cpu/multiversion.h"

namespace zg {

inline void AddInto(const float* x, int64_t count, float* sum) {
  Multiversion([=]() ZG_VERSION {
    ZG_INDEPENDENT
    for (int64_t i = 0; i < count; ++i) sum[i] += x[i];
  });
}

// Sets each of `sums` (`columns` floats) to its sum. `add_rows(begin, end)` adds the terms of these
// rows, in their order, to `block`, where the sums lie one after the other.
template <size_t kSums, typename AddRows>
void SumRows(int64_t rows, int64_t columns, float* block, const std::array<float*, kSums>& sums,
             const AddRows& add_rows) {
  constexpr int64_t kBlockRows = 32;
  for (float* const sum : sums) std::fill_n(sum, columns, 0.0f);
  for (int64_t begin = 0; begin < rows; begin += kBlockRows) {
    std::fill_n(block, static_cast<int64_t>(kSums) * columns, 0.0f);
    add_rows(begin, std::min(begin + kBlockRows, rows));
    for (size_t i = 0; i < kSums; ++i) {
      AddInto(block + static_cast<int64_t>(i) * columns, columns, sums[i]);
    }
  }
}

}  // namespace zg
