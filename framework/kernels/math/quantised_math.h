// The values of codes of 8 bits, as bitsandbytes' dynamic map (arXiv 1511.04561): 7 decades, of which
// each larger one has twice as many values, evenly spaced.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "framework/base/host_device.h"

namespace zg {

inline constexpr int kNumCodes = 256;

struct CodeTable {
  float values[kNumCodes];  // ascending
  float limits[kNumCodes];  // between a value and the next; the last is infinite
};

// Between values[code] and the next.
ZG_HOST_DEVICE inline float LimitBehind(const float* values, int code) {
  if (code + 1 == kNumCodes) return INFINITY;
  return static_cast<float>((static_cast<double>(values[code]) + values[code + 1]) / 2);
}

// Of numbers between -1 and 1, or without a sign between 0 and 1.
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
  for (int i = 0; i < kNumCodes; ++i) table.values[i] = static_cast<float>(values[i]);
  for (int i = 0; i < kNumCodes; ++i) table.limits[i] = LimitBehind(table.values, i);
  return table;
}

// The code of the value that is nearest to x, which lies in the table's range. Of NaN it is that of 0.
ZG_HOST_DEVICE inline int NearestCode(const CodeTable& table, float x) {
  int code = 0;
  for (int step = kNumCodes / 2; step > 0; step /= 2) {
    if (x > table.limits[code + step - 1]) code += step;
  }
  return code;
}

}  // namespace zg
