// The sum of one element over the ranks, on any device: the order and rounding of left_fold.h for
// received contributions.
#pragma once

#include <cstddef>
#include <cstdint>

#include "framework/base/host_device.h"
#include "framework/tensor/half.h"

namespace zg {

// The contributions to one part of a sum.
struct FoldInputs {
  const void* start = nullptr;     // a sum to continue, of the sum's type; null: none
  const void* own = nullptr;       // the contribution at `rank` in the order of the sum
  const void* received = nullptr;  // the others, in the order of the sum, equally spaced
  int64_t received_stride_bytes = 0;
  int rank = 0;
  int num_ranks = 1;

  template <typename Term>
  ZG_HOST_DEVICE const Term* TermsOf(int contributor) const {
    if (contributor == rank) return static_cast<const Term*>(own);
    const int place = contributor < rank ? contributor : contributor - 1;
    return reinterpret_cast<const Term*>(static_cast<const char*>(received) +
                                         place * received_stride_bytes);
  }
};

// 16-bit terms are added in f32.
ZG_HOST_DEVICE inline float Widened(float term) { return term; }
ZG_HOST_DEVICE inline float Widened(BFloat16 term) { return ToF32(term); }
ZG_HOST_DEVICE inline float Widened(Float16 term) { return ToF32(term); }
ZG_HOST_DEVICE inline int64_t Widened(int64_t term) { return term; }

template <typename Sum>
struct Narrowed {
  ZG_HOST_DEVICE static Sum Of(float sum) { return FromF32<Sum>(sum); }
};
template <>
struct Narrowed<int64_t> {
  ZG_HOST_DEVICE static int64_t Of(int64_t sum) { return sum; }
};

template <typename Term, typename Sum>
ZG_HOST_DEVICE void FoldElement(const FoldInputs& inputs, int64_t element, Sum* output) {
  int next = 0;
  auto sum = Widened(Term());
  if (inputs.start != nullptr) {
    sum = Widened(static_cast<const Sum*>(inputs.start)[element]);
  } else {
    sum = Widened(inputs.TermsOf<Term>(next++)[element]);
  }
  for (; next < inputs.num_ranks; ++next) sum += Widened(inputs.TermsOf<Term>(next)[element]);
  output[element] = Narrowed<Sum>::Of(sum);
}

// Calls f with a zero of the types of the terms and of the sum: f(BFloat16(), float()).
template <typename F>
void WithFoldTypes(DType terms, DType sum, const F& f) {
  if (terms == DType::kI64) return f(int64_t(), int64_t());
  WithFloatType(terms, [&](auto term) {
    if (sum == DType::kF32) return f(term, float());
    return f(term, term);
  });
}

}  // namespace zg
