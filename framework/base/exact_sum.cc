#include "framework/base/exact_sum.h"

#include <cmath>
#include <limits>

namespace zg {

void ExactSum::AddWords(const int64_t* words) {
  uint64_t carry = 0;
  for (int i = 0; i < kWordLimbs; ++i) {
    const uint64_t sum = static_cast<uint64_t>(words[i]) + carry;
    const bool is_last = i == kWordLimbs - 1;
    limbs_[1 + i] += static_cast<int64_t>(is_last ? sum : sum & 0xffffffff);
    carry = sum >> 32;
  }
  infinities_ += words[kWordLimbs];
  nans_ += words[kWordLimbs + 1];
}

void ExactSum::AddTo(int64_t* words) const {
  for (int i = 0; i < kWordLimbs; ++i) words[i] += limbs_[1 + i];
  words[kWordLimbs] += infinities_;
  words[kWordLimbs + 1] += nans_;
}

double ExactSum::Value() const {
  if (nans_ > 0) return std::numeric_limits<double>::quiet_NaN();
  if (infinities_ > 0) return std::numeric_limits<double>::infinity();
  ExactSum carried;
  carried.AddWords(limbs_ + 1);
  carried.infinities_ = carried.nans_ = 0;
  double value = 0;
  for (int i = 0; i < kWordLimbs; ++i) {
    value += std::ldexp(static_cast<double>(carried.limbs_[1 + i]), 32 * i - 320);
  }
  return value;
}

}  // namespace zg
