// Lanes: sixteen floats that the compiler keeps in one, two or four vector registers. A sum over a
// row adds element i into lane i % 64 of four of them and folds the lanes in one fixed order, so
// that it depends on neither the alignment nor the instruction set.
//
// For arithmetic only: GCC 12 takes comparisons of such vectors apart, lane by lane. Loops with
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

ZG_INLINE Lanes LoadLanes(const float* data) {
  Lanes lanes;
  std::memcpy(&lanes, data, sizeof(lanes));
  return lanes;
}

// Sixteen 16-bit numbers in f32, as ToF32 of tensor/half.h has them.
using HalfLanes = uint16_t __attribute__((vector_size(32)));
using LaneBits = uint32_t __attribute__((vector_size(64)));

ZG_INLINE LaneBits LoadHalfBits(const void* data) {
  HalfLanes half;
  std::memcpy(&half, data, sizeof(half));
  return __builtin_convertvector(half, LaneBits);
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

// The first `count` < 16 numbers, and `padding` in the other lanes.
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
  float values[kLanes];
  StoreLanes(lanes, values);
  for (int half = kLanes / 2; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) values[i] += values[i + half];
  }
  return values[0];
}

// The sum over i < count of term(load): `load` reads sixteen elements, or what is left of them and
// its second argument in their place, at the index of i.
//
//   SumTerms(count, [&](const auto& load) { return load(a, 0.0f) * load(b, 0.0f); });
template <typename Term>
ZG_INLINE float SumTerms(int64_t count, const Term& term) {
  constexpr int kSums = 4;  // enough to hide the latency of an addition
  Lanes sums[kSums] = {};
  int64_t i = 0;
  for (; i + kSums * kLanes <= count; i += kSums * kLanes) {
    for (int s = 0; s < kSums; ++s) {
      const int64_t at = i + s * kLanes;
      sums[s] += term([at](const auto* data, float)
                          __attribute__((always_inline)) { return LoadLanes(data + at); });
    }
  }
  for (int s = 0; i < count; ++s, i += kLanes) {
    const int64_t left = count - i;
    sums[s] += term([ i, left ](const auto* data, float padding) __attribute__((always_inline)) {
      return left >= kLanes ? LoadLanes(data + i) : LoadLanes(data + i, left, padding);
    });
  }
  return SumOfLanes((sums[0] + sums[1]) + (sums[2] + sums[3]));
}

// The largest of the elements, -infinity if there are none; a NaN counts only if it comes last.
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
