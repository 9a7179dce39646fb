// ReductionTypes: the dtypes of the terms and of the result of a sum over ranks.
#pragma once

#include "framework/tensor/dtype.h"

namespace zg {

// f32 and i64 terms give sums of their own type. 16-bit terms are added in f32; the sum stays in
// f32 or is rounded once, at the end.
struct ReductionTypes {
  DType terms = DType::kF32;
  DType sum = DType::kF32;

  ReductionTypes(DType dtype) : terms(dtype), sum(dtype) {}  // NOLINT: reads well in calls
  ReductionTypes(DType terms_dtype, DType sum_dtype) : terms(terms_dtype), sum(sum_dtype) {}
};

}  // namespace zg
