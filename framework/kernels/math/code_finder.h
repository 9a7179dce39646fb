// Finds 8-bit codes (kernels/math/quantised_math.h) without a search: the upper 16 bits of a number
// leave at most one limit in question.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "framework/base/host_device.h"
#include "framework/kernels/math/quantised_math.h"
#include "framework/kernels/math/vector_math.h"

namespace zg {

class CodeFinder {
 public:
  explicit CodeFinder(const CodeTable& table) : entries_(2 * kNumKeys) {
    for (int32_t key = 0; key < kNumKeys; ++key) {
      // All smaller magnitudes have the first key, NaN has the last.
      const float least = key == 0 ? 0.0f : MagnitudeOf(key + kFirstKey);
      const float end = MagnitudeOf(key + 1 + kFirstKey);
      const bool is_nan = key == kNumKeys - 1;
      entries_[key] = EntryAt(table, is_nan ? 0 : PlaceOf(table, least));
      entries_[key + kNumKeys] =
          EntryAt(table, is_nan ? 0 : PlaceOf(table, -std::nextafter(end, 0.0f)));
    }
  }

  // What a number's code is looked up by; loops that find keys are vectorised.
  ZG_INLINE static int32_t KeyOf(float x) {
    const int32_t bits = BitCast<int32_t>(x);
    int32_t key = ((bits & 0x7fffffff) >> 16) - kFirstKey;
    key = key < 0 ? 0 : key;
    key = key < kNumKeys ? key : kNumKeys - 1;
    return bits < 0 ? key + kNumKeys : key;
  }
  // The same as NearestCode(table, x); `key` is x's.
  uint8_t CodeOf(float x, int32_t key) const {
    const Entry& entry = entries_[key];
    return static_cast<uint8_t>(entry.code + (x > entry.limit ? 1 : 0));
  }

 private:
  // The numbers of a key have this code up to the limit, and the next one above it.
  struct Entry {
    float limit;
    int32_t code;
  };

  // The least limit is above 2^-23, and magnitudes are at most 1.
  static constexpr int32_t kFirstKey = 0x3400;
  static constexpr int32_t kNumKeys = 0x3f80 - kFirstKey + 2;

  static float MagnitudeOf(int32_t upper_bits) { return BitCast<float>(upper_bits << 16); }
  // The number of limits below x.
  static int PlaceOf(const CodeTable& table, float x) {
    return static_cast<int>(std::lower_bound(table.limits, table.limits + kNumCodes, x) -
                            table.limits);
  }
  static Entry EntryAt(const CodeTable& table, int place) {
    return {table.limits[place], place - table.num_negative};
  }

  std::vector<Entry> entries_;  // by key
};

}  // namespace zg
