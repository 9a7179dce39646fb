// The cases of cached_attention.
#pragma once

#include <cstdint>

#include "tests/ops/op_case.h"

namespace zg::testing {

FamilyCases CachedAttentionCases();

// The row of a cache where a text's new rows begin.
inline int64_t StartOf(const ReferenceTensor& start, int64_t text) {
  return static_cast<int64_t>(start.values[start.shape.dim(0) == 1 ? 0 : text]);
}

}  // namespace zg::testing
