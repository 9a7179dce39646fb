#include "framework/base/value_histogram.h"

#include <gtest/gtest.h>

#include <cfloat>
#include <cmath>
#include <random>
#include <vector>

namespace zg {
namespace {

using Bucket = ValueHistogram::Bucket;

ValueHistogram Of(const std::vector<float>& values) {
  ValueHistogram histogram;
  for (const float value : values) histogram.Add(value);
  return histogram;
}

void ExpectEqual(const ValueHistogram& a, const ValueHistogram& b) {
  EXPECT_EQ(a.num(), b.num());
  EXPECT_EQ(a.min(), b.min());
  EXPECT_EQ(a.max(), b.max());
  EXPECT_DOUBLE_EQ(a.sum(), b.sum());
  EXPECT_DOUBLE_EQ(a.sum_squares(), b.sum_squares());
  const std::vector<Bucket> of_a = a.buckets();
  const std::vector<Bucket> of_b = b.buckets();
  ASSERT_EQ(of_a.size(), of_b.size());
  for (size_t i = 0; i < of_a.size(); ++i) {
    EXPECT_EQ(of_a[i].begin, of_b[i].begin);
    EXPECT_EQ(of_a[i].end, of_b[i].end);
    EXPECT_EQ(of_a[i].count, of_b[i].count);
  }
}

TEST(ValueHistogram, CountsEveryFiniteValueInItsBucket) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> values = {0, -0.0f, FLT_MIN, -FLT_MAX, FLT_MAX, FLT_TRUE_MIN, INFINITY, NAN};
  for (int i = 0; i < 1000; ++i) values.push_back(std::ldexp(normal(random), i % 40 - 20));
  const ValueHistogram histogram = Of(values);
  EXPECT_EQ(histogram.num(), 1006);
  EXPECT_EQ(histogram.min(), -FLT_MAX);
  EXPECT_EQ(histogram.max(), FLT_MAX);
  double end = -INFINITY;
  for (const Bucket& bucket : histogram.buckets()) {
    EXPECT_LE(end, bucket.begin);
    EXPECT_LT(bucket.begin, bucket.end);
    end = bucket.end;
    int64_t count = 0;  // the edge nearer to zero belongs to a bucket
    for (const double value : values) {
      if (!std::isfinite(value)) continue;
      const bool is_negative = value < 0;
      count += is_negative ? bucket.begin < value && value <= bucket.end
                           : bucket.begin <= value && value < bucket.end;
    }
    EXPECT_EQ(bucket.count, count) << bucket.begin << " " << bucket.end;
  }
}

TEST(ValueHistogram, MergesAndPacks) {
  const ValueHistogram a = Of({1, 2, -3e-20f});
  const ValueHistogram b = Of({0.1f, 1e30f});
  ValueHistogram both = a;
  both.Merge(b);
  ExpectEqual(both, Of({1, 2, -3e-20f, 0.1f, 1e30f}));
  ExpectEqual(ValueHistogram::Unpack(both.Pack()), both);
  both.Merge(ValueHistogram());
  EXPECT_EQ(both.num(), 5);
  const ValueHistogram none;
  ExpectEqual(ValueHistogram::Unpack(none.Pack()), none);
  EXPECT_TRUE(none.buckets().empty());
}

}  // namespace
}  // namespace zg
