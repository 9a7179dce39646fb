// Adds squares to an exact sum (framework/base/exact_sum.h), term by term.
#pragma once

#include <algorithm>
#include <cstdint>

#include "framework/base/exact_sum.h"

namespace zg {

// One term: the sum of 16 squares, or of fewer, padded with zeros.
inline double SquareTerm(const float* x, int64_t count) {
  double s[kSquareSumTermElements] = {};
  for (int64_t i = 0; i < std::min(count, kSquareSumTermElements); ++i) {
    s[i] = static_cast<double>(x[i]) * x[i];
  }
  for (int i = 0; i < 8; ++i) s[i] += s[i + 8];
  return ((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7]));
}

// Adds the terms of elements, the first of which begins a term.
inline void AddSquareTerms(const float* x, int64_t count, int64_t* words) {
  ExactSum sum;
  for (int64_t i = 0; i < count; i += kSquareSumTermElements) sum.Add(SquareTerm(x + i, count - i));
  sum.AddTo(words);
}

}  // namespace zg
