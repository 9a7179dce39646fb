// Lanes: sixteen floats that the compiler keeps in one, two or four vector registers. A sum over a
// row adds element i into lane i % 64 of four of them and folds the lanes in one fixed order, so
// the sum depends on neither the alignment nor the instruction set.
//
// For arithmetic only: GCC 12 splits comparisons of such vectors into single lanes. Loops with
// selections are written over floats and vectorised by the compiler.
#pragma once

#include <cstdint>
#include <cstring>

#include "framework/kernels/cpu/multiversion.h"
#include "framework/tensor/half.h"

namespace zg {

inline constexpr int kLanes = 16;
using Lanes = float __attribute__((vector_size(64)));
using LaneIndices = int32_t __attribute__((vector_size(64)));

// `count` elements, rounded up to whole lanes.
inline int64_t WholeLanes(int64_t count) { return (count + kLanes - 1) / kLanes * kLanes; }

ZG_INLINE Lanes LoadLanes(const float* data) {
  Lanes lanes;
  std::memcpy(&lanes, data, sizeof(lanes));
  return lanes;
}

// Converts sixteen 16-bit numbers to f32, like ToF32 of tensor/half.h.
using LaneBits = uint32_t __attribute__((vector_size(64)));

// GCC 12 turns an initializer list into one instruction where there is one, but not
// __builtin_convertvector.
template <typename Half>
ZG_INLINE LaneBits LoadHalfBits(const Half* h) {
  return LaneBits{h[0].bits,  h[1].bits,  h[2].bits,  h[3].bits, h[4].bits,  h[5].bits,
                  h[6].bits,  h[7].bits,  h[8].bits,  h[9].bits, h[10].bits, h[11].bits,
                  h[12].bits, h[13].bits, h[14].bits, h[15].bits};
}

ZG_INLINE Lanes LoadLanes(const BFloat16* data) {
  const LaneBits bits = LoadHalfBits(data) << 16;
  Lanes lanes;
  std::memcpy(&lanes, &bits, sizeof(lanes));
  return lanes;
}

ZG_INLINE Lanes LoadLanes(const Float16* data) {
  const LaneBits half = LoadHalfBits(data);
  const LaneBits magnitude = (half & 0x7fff) << 13;
  Lanes finite;
  std::memcpy(&finite, &magnitude, sizeof(finite));
  finite *= 0x1p112f;
  LaneBits bits;
  std::memcpy(&bits, &finite, sizeof(bits));
  // All ones where the number is infinite or NaN: there the exponent's bits carry into bit 15.
  const LaneBits not_finite = -((((half & 0x7c00) + 0x0400) >> 15) & 1);
  bits = (bits & ~not_finite) | ((magnitude | 0x7f800000) & not_finite);
  bits |= (half & 0x8000) << 16;
  Lanes lanes;
  std::memcpy(&lanes, &bits, sizeof(lanes));
  return lanes;
}

// Loads the first `count` < 16 numbers, with `padding` in the other lanes.
template <typename T>
ZG_INLINE Lanes LoadLanes(const T* data, int64_t count, float padding) {
  float lanes[kLanes];
  for (int i = 0; i < kLanes; ++i) lanes[i] = padding;
  for (int64_t i = 0; i < count; ++i) lanes[i] = ToF32(data[i]);
  return LoadLanes(lanes);
}

ZG_INLINE void StoreLanes(Lanes lanes, float* data) { std::memcpy(data, &lanes, sizeof(lanes)); }

// ((l0 + l8) + (l4 + l12)) + ..., halving the number of lanes each time.
ZG_INLINE float SumOfLanes(Lanes lanes) {
  const auto eight = __builtin_shufflevector(lanes, lanes, 0, 1, 2, 3, 4, 5, 6, 7) +
                     __builtin_shufflevector(lanes, lanes, 8, 9, 10, 11, 12, 13, 14, 15);
  const auto four = __builtin_shufflevector(eight, eight, 0, 1, 2, 3) +
                    __builtin_shufflevector(eight, eight, 4, 5, 6, 7);
  return (four[0] + four[2]) + (four[1] + four[3]);
}

// The sums over i < count of kNumSums terms. terms(load, sums) adds its lanes to sums[0], sums[1],
// ...; `load` reads sixteen elements at the index of i. At the end it reads the remaining elements
// and fills the other lanes with its second argument.
template <int kNumSums, typename Terms>
ZG_INLINE void SumManyTerms(int64_t count, const Terms& terms, float* results) {
  constexpr int kSums = 4;  // enough to hide the latency of an addition
  Lanes sums[kSums][kNumSums] = {};
  int64_t i = 0;
  for (; i + kSums * kLanes <= count; i += kSums * kLanes) {
#pragma GCC unroll 4
    for (int s = 0; s < kSums; ++s) {
      const int64_t at = i + s * kLanes;
      terms(
          [at](const auto* data, float)
              __attribute__((always_inline)) { return LoadLanes(data + at); },
          sums[s]);
    }
  }
  // Indices of `sums` are constants, so that they stay in registers.
  int next = 0;
#pragma GCC unroll 4
  for (int s = 0; s < kSums - 1; ++s) {
    if (i + kLanes > count) break;
    terms(
        [i](const auto* data, float) __attribute__((always_inline)) { return LoadLanes(data + i); },
        sums[s]);
    i += kLanes;
    ++next;
  }
  if (i < count) {
    Lanes rest[kNumSums] = {};
    terms(
        [ i, left = count - i ](const auto* data, float padding)
            __attribute__((always_inline)) { return LoadLanes(data + i, left, padding); },
        rest);
#pragma GCC unroll 4
    for (int s = 0; s < kSums; ++s) {
      for (int k = 0; k < kNumSums; ++k) {
        if (s == next) sums[s][k] += rest[k];
      }
    }
  }
  for (int k = 0; k < kNumSums; ++k) {
    results[k] = SumOfLanes((sums[0][k] + sums[1][k]) + (sums[2][k] + sums[3][k]));
  }
}

// The sum over i < count of term(load):
//
//   SumTerms(count, [&](const auto& load) { return load(a, 0.0f) * load(b, 0.0f); });
template <typename Term>
ZG_INLINE float SumTerms(int64_t count, const Term& term) {
  float sum;
  SumManyTerms<1>(
      count,
      [&](const auto& load, Lanes* sums) __attribute__((always_inline)) { sums[0] += term(load); },
      &sum);
  return sum;
}

// The largest of the elements, -infinity if there are none; a NaN counts only if it is last.
ZG_INLINE float MaximumOf(const float* data, int64_t count) {
  constexpr int64_t kWidth = 4 * kLanes;
  float lanes[kWidth];
  for (float& lane : lanes) lane = -__builtin_inff();
  int64_t i = 0;
  for (; i + kWidth <= count; i += kWidth) {
    for (int64_t l = 0; l < kWidth; ++l) {
      const float value = data[i + l];
      lanes[l] = lanes[l] > value ? lanes[l] : value;
    }
  }
  for (int64_t l = 0; i < count; ++i, ++l) lanes[l] = lanes[l] > data[i] ? lanes[l] : data[i];
  for (int64_t half = kWidth / 2; half > 0; half /= 2) {
    for (int64_t l = 0; l < half; ++l) {
      const float value = lanes[l + half];
      lanes[l] = lanes[l] > value ? lanes[l] : value;
    }
  }
  return lanes[0];
}

}  // namespace zg
