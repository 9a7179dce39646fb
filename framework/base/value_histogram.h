// ValueHistogram: the distribution of f32 values. Buckets end at the powers of two, of both signs,
// and at three values between each two of them, so counting needs no arithmetic.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace zg {

class ValueHistogram {
 public:
  ValueHistogram() : counts_(kNumBuckets) {}

  void Add(float value);  // ignores a value that is not finite
  void Merge(const ValueHistogram& other);

  // The number of values that were added.
  int64_t num() const { return num_; }
  double min() const { return min_; }
  double max() const { return max_; }
  double sum() const { return sum_; }
  double sum_squares() const { return sum_squares_; }

  // Buckets that are not empty, in ascending order.
  struct Bucket {
    double begin = 0;
    double end = 0;
    int64_t count = 0;
  };
  std::vector<Bucket> buckets() const;

  // Converts to a line of text, and back.
  std::string Pack() const;
  static ValueHistogram Unpack(const std::string& packed);

 private:
  // By sign, exponent and the two highest bits of the mantissa, in ascending order.
  static constexpr int kNumBuckets = 2048;

  std::vector<int64_t> counts_;
  int64_t num_ = 0;
  double min_ = std::numeric_limits<double>::infinity();
  double max_ = -std::numeric_limits<double>::infinity();
  double sum_ = 0;
  double sum_squares_ = 0;
};

}  // namespace zg
