// What programs do with the rows of texts that earlier ones have left (framework/ops/cache.cc), before
// there are variables for them. Caches (B, T, C); starts and parents are numbers of each text, or
// one start of all.
#pragma once

#include <cstdint>
#include <vector>

#include "framework/base/status.h"
#include "tests/testing/heap_tensor.h"

namespace zg::testing {

using NumbersOfTexts = std::vector<double>;

inline int64_t NumberOf(const NumbersOfTexts& numbers, int64_t text) {
  return static_cast<int64_t>(numbers[numbers.size() == 1 ? 0 : text]);
}

// The rows before its start become those of its parent.
void MoveTexts(const NumbersOfTexts& parents, const NumbersOfTexts& starts, HeapTensor* cache);

// Error if there are fewer rows in the cache.
Status WriteRows(const HeapTensor& rows, const NumbersOfTexts& starts, HeapTensor* cache);

// Zeros for texts that begin.
void ClearBegun(const NumbersOfTexts& starts, HeapTensor* state);

}  // namespace zg::testing
