// A standard normal from random words on a device, with the arithmetic of framework/base/random.cc,
// and so with its bits.
#pragma once

#include <cmath>
#include <cstdint>

#include "framework/base/host_device.h"
#include "framework/kernels/math/vector_math.h"

namespace zg {

struct NormalPair {
  float first, second;
};

// Uses the Box-Muller transform.
ZG_HOST_DEVICE ZG_INLINE NormalPair NormalsOf(uint32_t radius_word, uint32_t angle_word) {
  const uint32_t odd = (radius_word >> 1) | 1u;
  const float u = static_cast<float>(static_cast<int32_t>(odd)) * 0x1p-31f;
  const float radius = std::sqrt(-2.0f * Log(u));
  const uint32_t quadrant = (angle_word + (1u << 29)) >> 30;
  const int32_t rest = BitCast<int32_t>(angle_word - (quadrant << 30));
  const float x = static_cast<float>(rest) * 0x1.921fb6p-30f;
  const float square = x * x;
  float sine = -1.9515295891e-4f;
  sine = sine * square + 8.3321608736e-3f;
  sine = sine * square - 1.6666654611e-1f;
  sine = (sine * square) * x + x;
  float cosine = 2.443315711809948e-5f;
  cosine = cosine * square - 1.388731625493765e-3f;
  cosine = cosine * square + 4.166664568298827e-2f;
  cosine = ((cosine * square) * square - square * 0.5f) + 1.0f;
  // A rotation by one quadrant takes (sin, cos) to (cos, -sin).
  const bool is_odd = (quadrant & 1u) != 0;
  const uint32_t sine_bits = BitCast<uint32_t>(is_odd ? cosine : sine) ^ ((quadrant >> 1) << 31);
  const uint32_t cosine_bits =
      BitCast<uint32_t>(is_odd ? sine : cosine) ^ (((quadrant + 1u) >> 1) << 31);
  return {radius * BitCast<float>(cosine_bits), radius * BitCast<float>(sine_bits)};
}

}  // namespace zg
