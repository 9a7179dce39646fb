// The values of 8-bit codes, those of bitsandbytes' dynamic map (arXiv 1511.04561): 7 decades, each
// of which has twice as many values as the next smaller one, evenly spaced.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "framework/base/host_device.h"

namespace zg {

inline constexpr int kNumCodes = 256;

// Code 0 is the number 0, which is what zeroed memory holds; from there codes count upwards and
// wrap around to those of negative numbers.
struct CodeTable {
  float values[kNumCodes];  // by code
  float
      limits[kNumCodes];  // upper limit between each value and the next, from the lowest value on;
                          // the last is infinite
  int num_negative;

  // The value `place` steps above the lowest.
  ZG_HOST_DEVICE float ValueAt(int place) const {
    return values[static_cast<uint8_t>(place - num_negative)];
  }
  ZG_HOST_DEVICE float LimitAt(int place) const {
    if (place + 1 == kNumCodes) return INFINITY;
    return static_cast<float>((static_cast<double>(ValueAt(place)) + ValueAt(place + 1)) / 2);
  }
};

// For numbers between -1 and 1, or unsigned ones between 0 and 1.
inline CodeTable MakeCodeTable(bool is_signed) {
  constexpr int kDecades = 7;
  std::vector<double> values = {0.0, 1.0};
  for (int decade = 0; decade < kDecades; ++decade) {
    const int count = 1 << (is_signed ? decade : decade + 1);
    const double scale = std::pow(10.0, decade - (kDecades - 1));
    for (int i = 0; i < count; ++i) {
      const double value = scale * (0.1 + 0.9 * (i + 0.5) / count);
      values.push_back(value);
      if (is_signed) values.push_back(-value);
    }
  }
  std::sort(values.begin(), values.end());
  CodeTable table = {};
  table.num_negative =
      static_cast<int>(std::lower_bound(values.begin(), values.end(), 0.0) - values.begin());
  for (int place = 0; place < kNumCodes; ++place) {
    table.values[static_cast<uint8_t>(place - table.num_negative)] =
        static_cast<float>(values[place]);
  }
  for (int place = 0; place < kNumCodes; ++place) table.limits[place] = table.LimitAt(place);
  return table;
}

// The code of the value nearest to x, which must be in the table's range.
ZG_HOST_DEVICE inline uint8_t NearestCode(const CodeTable& table, float x) {
  int place = 0;
  for (int step = kNumCodes / 2; step > 0; step /= 2) {
    if (x > table.limits[place + step - 1]) place += step;
  }
  return static_cast<uint8_t>(place - table.num_negative);
}

}  // namespace zg
