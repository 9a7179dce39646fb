// Rows of a few elements, turned so that the same element of many rows lies side by side and vectors are
// full: element i of row r is at i * kTurnedRows + r. Sums and maxima have the bits of SumTerms and
// MaximumOf (lanes.h) for each row.
#pragma once

#include <algorithm>
#include <cstdint>

#include "framework/kernels/cpu/lanes.h"
#include "framework/kernels/cpu/multiversion.h"

namespace zg {

inline constexpr int64_t kTurnedRows = 64;
inline constexpr int64_t kMostTurned =
    3 * kLanes;  // elements of a row; of longer ones it does not pay

inline constexpr int64_t kFewRows = 4;  // for which turning does not pay

inline bool AreTurned(int64_t rows, int64_t columns) {
  return rows > kFewRows && columns <= kMostTurned;
}

struct TurnedRows {
  float data[kMostTurned * kTurnedRows];

  float* element(int64_t i) { return data + i * kTurnedRows; }
  const float* element(int64_t i) const { return data + i * kTurnedRows; }
};

// Takes at most kTurnedRows rows; those that are missing are zeros.
ZG_INLINE void Turn(const float* x, int64_t rows, int64_t columns, TurnedRows* turned) {
  for (int64_t i = 0; i < columns; ++i) {
    float* const element = turned->element(i);
    for (int64_t r = 0; r < rows; ++r) element[r] = x[r * columns + i];
    for (int64_t r = rows; r < kTurnedRows; ++r) element[r] = 0.0f;
  }
}

ZG_INLINE void TurnBack(const TurnedRows& turned, int64_t rows, int64_t columns, float* y) {
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t i = 0; i < columns; ++i) y[r * columns + i] = turned.element(i)[r];
  }
}

// y[i][r] = function(i, r) for all elements; `function` may read y[i][r].
template <typename Function>
ZG_INLINE void SetTurned(int64_t columns, const Function& function, TurnedRows* y) {
  for (int64_t i = 0; i < columns; ++i) {
    float* const element = y->element(i);
    ZG_INDEPENDENT
    for (int64_t r = 0; r < kTurnedRows; ++r) element[r] = function(i, r);
  }
}

ZG_INLINE void MaximaOfTurned(const TurnedRows& x, int64_t columns, float* maxima) {
  for (int64_t r = 0; r < kTurnedRows; ++r) maxima[r] = -__builtin_inff();
  for (int64_t i = 0; i < columns; ++i) {
    const float* const element = x.element(i);
    for (int64_t r = 0; r < kTurnedRows; ++r) {
      maxima[r] = element[r] > maxima[r] ? element[r] : maxima[r];
    }
  }
}

// As SumTerms does: element i is in lane i % 16 of one of its sums, which are added up; then lanes l and
// l + 8 are added, l and l + 4, and so on.
ZG_INLINE void SumsOfTurned(const TurnedRows& x, int64_t columns, float* sums) {
  constexpr float kNone[kTurnedRows] = {};
  const auto at = [&](int64_t i) __attribute__((always_inline)) {
    return i < columns ? x.element(i) : kNone;
  };
  int64_t num_lanes = kLanes;  // the others hold zeros, which add nothing
  while (num_lanes > 1 && num_lanes / 2 >= columns) num_lanes /= 2;
  float lanes[kLanes][kTurnedRows];
  for (int64_t l = 0; l < num_lanes; ++l) {
    const float *const first = at(l), *const second = at(l + kLanes);
    const float* const third = at(l + 2 * kLanes);
    for (int64_t r = 0; r < kTurnedRows; ++r) lanes[l][r] = (first[r] + second[r]) + third[r];
  }
  for (int64_t half = num_lanes / 2; half > 0; half /= 2) {
    for (int64_t l = 0; l < half; ++l) {
      for (int64_t r = 0; r < kTurnedRows; ++r) lanes[l][r] += lanes[l + half][r];
    }
  }
  std::copy_n(lanes[0], kTurnedRows, sums);
}

// Calls function(begin, count) for the blocks of at most kTurnedRows rows.
template <typename Function>
ZG_INLINE void ForTurned(int64_t rows, const Function& function) {
  for (int64_t begin = 0; begin < rows; begin += kTurnedRows) {
    function(begin, std::min(kTurnedRows, rows - begin));
  }
}

}  // namespace zg
