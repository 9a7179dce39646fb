// ReductionTypes: the dtypes of the terms and of the result of a sum over ranks, and its order.
#pragma once

#include "framework/tensor/dtype.h"

namespace zg {

enum class FoldOrder {
  kLeft,      // ((g0 + g1) + g2) + g3
  kPairwise,  // (g0 + g1) + (g2 + g3): neighbours, then sums of neighbours; only of f32 terms
};

// f32 and i64 terms give sums of their own type. 16-bit terms are added in f32; the sum stays in
// f32 or is rounded once, at the end.
struct ReductionTypes {
  DType terms = DType::kF32;
  DType sum = DType::kF32;
  FoldOrder order = FoldOrder::kLeft;

  ReductionTypes(DType dtype) : terms(dtype), sum(dtype) {}  // NOLINT: reads well in calls
  ReductionTypes(DType terms_dtype, DType sum_dtype, FoldOrder fold_order = FoldOrder::kLeft)
      : terms(terms_dtype), sum(sum_dtype), order(fold_order) {}
};

}  // namespace zg
