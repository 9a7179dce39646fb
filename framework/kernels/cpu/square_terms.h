// Exact sums (framework/base/exact_sum.h) of squares: a term is the f64 sum over 16 elements.
#pragma once

#include <cstdint>

#include "framework/base/exact_sum.h"

namespace zg {

class SquareTerms {
 public:
  // Adds the terms of elements, the first of which begins a term; the last term may have fewer
  // elements, as if padded with zeros.
  void Add(const float* x, int64_t count);

  // Adds the sum of all terms so far.
  void AddTo(int64_t* words) const;

 private:
  // Two sums, so that an addition need not wait for the previous one.
  ExactSum even_;
  ExactSum odd_;
};

inline void AddSquareTerms(const float* x, int64_t count, int64_t* words) {
  SquareTerms terms;
  terms.Add(x, count);
  terms.AddTo(words);
}

}  // namespace zg
