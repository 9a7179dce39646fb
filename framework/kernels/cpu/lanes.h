// Lanes: sixteen floats that the compiler keeps in one, two or four vector registers. Reductions
// add element i into lane i % 16 and fold the lanes in one fixed order, so that a sum depends on
// neither the alignment nor the instruction set.
#pragma once

#include <cstdint>
#include <cstring>

#include "framework/kernels/cpu/multiversion.h"

namespace zg {

inline constexpr int kLanes = 16;
using Lanes = float __attribute__((vector_size(64)));
using SignedLanes = int32_t __attribute__((vector_size(64)));
using UnsignedLanes = uint32_t __attribute__((vector_size(64)));

ZG_INLINE Lanes LoadLanes(const float* data) {
  Lanes lanes;
  std::memcpy(&lanes, data, sizeof(lanes));
  return lanes;
}

// The first `count` < 16 floats, and `padding` in the other lanes.
ZG_INLINE Lanes LoadLanes(const float* data, int64_t count, float padding) {
  float lanes[kLanes];
  for (int i = 0; i < kLanes; ++i) lanes[i] = padding;
  for (int64_t i = 0; i < count; ++i) lanes[i] = data[i];
  return LoadLanes(lanes);
}

ZG_INLINE void StoreLanes(Lanes lanes, float* data) { std::memcpy(data, &lanes, sizeof(lanes)); }

ZG_INLINE void StoreLanes(Lanes lanes, float* data, int64_t count) {
  float all[kLanes];
  StoreLanes(lanes, all);
  for (int64_t i = 0; i < count; ++i) data[i] = all[i];
}

ZG_INLINE Lanes Maximum(Lanes a, Lanes b) { return a > b ? a : b; }

// ((l0 + l8) + (l4 + l12)) + ..., halving the number of lanes each time.
ZG_INLINE float SumOfLanes(Lanes lanes) {
  float values[kLanes];
  StoreLanes(lanes, values);
  for (int half = kLanes / 2; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) values[i] += values[i + half];
  }
  return values[0];
}

ZG_INLINE float MaximumOfLanes(Lanes lanes) {
  float values[kLanes];
  StoreLanes(lanes, values);
  for (int half = kLanes / 2; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) {
      values[i] = values[i] > values[i + half] ? values[i] : values[i + half];
    }
  }
  return values[0];
}

}  // namespace zg
