// The words of an exact sum of squares (framework/base/exact_sum.h), from doubles.
#pragma once

#include <cmath>
#include <vector>

#include "framework/base/exact_sum.h"

namespace zg::testing {

// The digits of `term` in base 2^32, from 2^256 down to 2^-320.
inline void AddDigits(double term, std::vector<double>* words) {
  for (int i = kExactSumWords - 3; i >= 0; --i) {
    const double digit = std::floor(std::ldexp(term, 320 - 32 * i));
    term -= std::ldexp(digit, 32 * i - 320);
    (*words)[i] += digit;
  }
}

inline std::vector<double> SquareSumWords(const std::vector<double>& g) {
  std::vector<double> words(kExactSumWords);
  for (size_t block = 0; block < g.size(); block += 16) {
    double s[16] = {};
    for (size_t i = 0; i < 16 && block + i < g.size(); ++i) s[i] = g[block + i] * g[block + i];
    for (int i = 0; i < 8; ++i) s[i] += s[i + 8];
    AddDigits(((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7])), &words);
  }
  return words;
}

}  // namespace zg::testing
