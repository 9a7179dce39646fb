#include "framework/kernels/cpu/gemm_columns.h"

#include <immintrin.h>

#include "framework/kernels/cpu/lanes.h"
#include "framework/kernels/cpu/multiversion.h"
#include "framework/kernels/cpu/transpose.h"
#include "framework/tensor/half.h"

namespace zg {
namespace {

#ifdef ZG_HAS_VERSIONS

constexpr int64_t kAheadBytes = 768;  // distance at which B is prefetched

// For floats too: the compiler itself uses no instruction for bf16.
#define ZG_AVX512 __attribute__((target("avx512f,avx512vl,avx512bw,avx512bf16")))

template <bool kArePairs>
ZG_AVX512 ZG_INLINE __m512 MultiplyAdd(float a, Lanes b, __m512 sums) {
  const __m512 element = _mm512_set1_ps(a);
  if constexpr (kArePairs) return _mm512_dpbf16_ps(sums, (__m512bh)element, (__m512bh)b);
  return _mm512_fmadd_ps(element, (__m512)b, sums);
}

// The sums of sixteen columns, the first of which is `column`. B has elements of T, or pairs in the
// place of floats, `steps` in a column.
template <typename T, bool kArePairs, int kRows>
ZG_AVX512 void SumColumns(const ColumnsProduct& product, const T* b, int64_t stride, int64_t steps,
                          int64_t column) {
  float* const c = product.c + column;
  __m512 sums[kRows];
  for (int i = 0; i < kRows; ++i) {
    sums[i] = _mm512_setzero_ps();
    if (product.start != nullptr) {
      sums[i] = _mm512_loadu_ps(product.start + column);
    } else if (product.continues) {
      sums[i] = _mm512_loadu_ps(c + i * product.c_stride);
    }
  }
  const float* a = product.a;
  int64_t k = 0;
  for (; k + kLanes <= steps; k += kLanes) {
    constexpr int64_t kAhead = kAheadBytes / sizeof(T);
    // At the end of the columns that of the next ones.
    const int64_t ahead = k + kAhead < steps ? kAhead : kAhead - steps + kLanes * stride;
    Lanes square[kLanes];
    LoadTransposed(b + k, stride, ahead, square);
#pragma GCC unroll 16
    for (int step = 0; step < kLanes; ++step, a += kTileRows) {
      for (int i = 0; i < kRows; ++i) {
        sums[i] = MultiplyAdd<kArePairs>(a[i], square[step], sums[i]);
      }
    }
  }
  for (; k < steps; ++k, a += kTileRows) {
    Lanes row;
    for (int j = 0; j < kLanes; ++j) row[j] = ToF32(b[j * stride + k]);
    for (int i = 0; i < kRows; ++i) sums[i] = MultiplyAdd<kArePairs>(a[i], row, sums[i]);
  }
  for (int i = 0; i < kRows; ++i) _mm512_storeu_ps(c + i * product.c_stride, sums[i]);
}

template <typename T, bool kArePairs = false>
int64_t Multiply(const ColumnsProduct& product) {
  if (product.rows > kTileRows || VectorInstructionSet() != InstructionSet::kAvx512) return 0;
  using Sum = void (*)(const ColumnsProduct&, const T*, int64_t, int64_t, int64_t);
  constexpr Sum kSums[kTileRows] = {SumColumns<T, kArePairs, 1>, SumColumns<T, kArePairs, 2>,
                                    SumColumns<T, kArePairs, 3>, SumColumns<T, kArePairs, 4>,
                                    SumColumns<T, kArePairs, 5>, SumColumns<T, kArePairs, 6>,
                                    SumColumns<T, kArePairs, 7>, SumColumns<T, kArePairs, 8>};
  constexpr int64_t kElements = kArePairs ? 2 : 1;
  const int64_t stride = product.b.stride / kElements;
  const int64_t steps = product.b.depth / kElements;
  const T* const b = static_cast<const T*>(product.b.data);
  int64_t column = 0;
  for (; column + kLanes <= product.b.count; column += kLanes) {
    kSums[product.rows - 1](product, b + column * stride, stride, steps, column);
  }
  return column;
}

#else

template <typename T, bool kArePairs = false>
int64_t Multiply(const ColumnsProduct& /*product*/) {
  return 0;
}

#endif

}  // namespace

template <typename T>
int64_t MultiplyColumnsInRegisters(const ColumnsProduct& product) {
  return Multiply<T>(product);
}

int64_t MultiplyPairColumnsInRegisters(const ColumnsProduct& product) {
  return Multiply<float, /*kArePairs=*/true>(product);
}

template int64_t MultiplyColumnsInRegisters<float>(const ColumnsProduct&);
template int64_t MultiplyColumnsInRegisters<BFloat16>(const ColumnsProduct&);
template int64_t MultiplyColumnsInRegisters<Float16>(const ColumnsProduct&);

}  // namespace zg
