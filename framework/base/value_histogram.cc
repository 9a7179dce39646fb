#include "framework/base/value_histogram.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>

namespace zg {
namespace {

constexpr int kShift = 21;  // leaves sign, exponent and two bits of the mantissa
constexpr int kBucketsPerSign = 1024;
constexpr int kInfinity = 0xff << 2;

// The lower edge of bucket `i` of the positive values.
double Edge(int i) {
  if (i == kInfinity) return 0x1p128;
  const uint32_t bits = static_cast<uint32_t>(i) << kShift;
  float edge = 0;
  std::memcpy(&edge, &bits, sizeof(edge));
  return edge;
}

}  // namespace

void ValueHistogram::Add(float value) {
  if (!std::isfinite(value)) return;
  value += 0.0f;  // turns -0 into +0
  uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  const int magnitude = static_cast<int>((bits & 0x7fffffff) >> kShift);
  const bool is_negative = bits >> 31 != 0;
  ++counts_[is_negative ? kBucketsPerSign - 1 - magnitude : kBucketsPerSign + magnitude];
  ++num_;
  const double wide = value;
  min_ = std::min(min_, wide);
  max_ = std::max(max_, wide);
  sum_ += wide;
  sum_squares_ += wide * wide;
}

void ValueHistogram::Merge(const ValueHistogram& other) {
  for (int i = 0; i < kNumBuckets; ++i) counts_[i] += other.counts_[i];
  num_ += other.num_;
  min_ = std::min(min_, other.min_);
  max_ = std::max(max_, other.max_);
  sum_ += other.sum_;
  sum_squares_ += other.sum_squares_;
}

std::vector<ValueHistogram::Bucket> ValueHistogram::buckets() const {
  std::vector<Bucket> buckets;
  for (int i = 0; i < kNumBuckets; ++i) {
    if (counts_[i] == 0) continue;
    const int magnitude = i < kBucketsPerSign ? kBucketsPerSign - 1 - i : i - kBucketsPerSign;
    const double near = Edge(magnitude);
    const double far = Edge(magnitude + 1);
    if (i < kBucketsPerSign) {
      buckets.push_back({-far, -near, counts_[i]});
    } else {
      buckets.push_back({near, far, counts_[i]});
    }
  }
  return buckets;
}

std::string ValueHistogram::Pack() const {
  std::string packed = fmt::format("{} {} {} {} {}", num_, min_, max_, sum_, sum_squares_);
  for (int i = 0; i < kNumBuckets; ++i) {
    if (counts_[i] > 0) packed += fmt::format(" {} {}", i, counts_[i]);
  }
  return packed;
}

ValueHistogram ValueHistogram::Unpack(const std::string& packed) {
  ValueHistogram histogram;
  const char* at = packed.c_str();
  char* end = nullptr;
  const auto next_number = [&] {
    const double number = std::strtod(at, &end);
    at = end;
    return number;
  };
  const auto next_integer = [&] {
    const int64_t number = std::strtoll(at, &end, 10);
    at = end;
    return number;
  };
  histogram.num_ = next_integer();
  histogram.min_ = next_number();
  histogram.max_ = next_number();
  histogram.sum_ = next_number();
  histogram.sum_squares_ = next_number();
  while (*at != '\0') {
    const int64_t bucket = next_integer();
    histogram.counts_[bucket] = next_integer();
  }
  return histogram;
}

}  // namespace zg
