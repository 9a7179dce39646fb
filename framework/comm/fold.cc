#include "framework/comm/fold.h"

#include <algorithm>

#include "framework/base/check.h"
#include "framework/comm/left_fold.h"

namespace zg {
namespace {

constexpr int64_t kBlockElements = 2048;  // their sums stay in the first-level cache

// Sets `sum` to that of the terms from `begin` on: the sum of the first ones, as many as a power of
// two below their number, plus that of the rest.
void PairwiseSum(const float* const* terms, int num_terms, int64_t begin, int64_t count,
                 float* sum) {
  if (num_terms == 1) {
    std::copy_n(terms[0] + begin, count, sum);
    return;
  }
  int first = 1;
  while (2 * first < num_terms) first *= 2;
  PairwiseSum(terms, first, begin, count, sum);
  alignas(64) float rest[kBlockElements];
  PairwiseSum(terms + first, num_terms - first, begin, count, rest);
  for (int64_t i = 0; i < count; ++i) sum[i] += rest[i];
}

}  // namespace

void Fold(ReductionTypes types, bool continues, const void* const* inputs, int num_inputs,
          int64_t elements, void* output) {
  // Up to three terms have the same order both ways.
  if (types.order == FoldOrder::kLeft || num_inputs <= 3) {
    return LeftFold(types, continues, inputs, num_inputs, elements, output);
  }
  ZG_CHECK(types.terms == DType::kF32 && types.sum == DType::kF32 && !continues,
           "a pairwise sum of {} terms into {}", DTypeName(types.terms), DTypeName(types.sum));
  const auto terms = reinterpret_cast<const float* const*>(inputs);
  alignas(64) float sum[kBlockElements];  // `output` may be one of the terms
  for (int64_t begin = 0; begin < elements; begin += kBlockElements) {
    const int64_t count = std::min(kBlockElements, elements - begin);
    PairwiseSum(terms, num_inputs, begin, count, sum);
    std::copy_n(sum, count, static_cast<float*>(output) + begin);
  }
}

}  // namespace zg
