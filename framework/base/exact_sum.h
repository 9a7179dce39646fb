// ExactSum: a sum of non-negative f64 terms as one long integer (a Kulisch accumulator), which
// depends neither on the order of the additions nor on the distribution of the terms over ranks.
// Made for sums of squares of f32 numbers, which are multiples of 2^-298 below 2^256.
//
// Between nodes and ranks it is sent as kExactSumWords words: word i < 19 counts multiples of 2^(32
// i - 320), the last two count the infinite terms and the NaN terms. Adding a term does not carry,
// so the words of several sums add up to those of the sum of all their terms, as long as there are
// fewer than 2^31 of them: no word reaches 2^63.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "framework/base/host_device.h"

namespace zg {

inline constexpr int kExactSumWords = 21;
inline constexpr int64_t kExactSumMaxTerms = int64_t{1} << 31;

// A term of a sum of squares (square_sum) is the f64 sum over this many consecutive elements.
// Shards are multiples of it, so no rank has a part of a term.
inline constexpr int64_t kSquareSumTermElements = 16;

class ExactSum {
 public:
  // Adds a multiple of 2^-320 below 2^260, an infinity, or NaN.
  ZG_HOST_DEVICE void Add(double term) {
    uint64_t bits;
    std::memcpy(&bits, &term, sizeof(bits));
    const int64_t exponent = static_cast<int64_t>(bits >> 52 & 0x7ff);
    const uint64_t mantissa = (bits & kMantissaMask) | uint64_t{exponent != 0} << 52;
    const int64_t shift = std::max<int64_t>(exponent - kLowestExponent, 0);
    const int64_t within = shift % 32;
    const uint64_t low = mantissa << within;
    int64_t* const limbs = limbs_ + shift / 32;
    limbs[0] += static_cast<int64_t>(low & 0xffffffff);
    limbs[1] += static_cast<int64_t>(low >> 32);
    limbs[2] += static_cast<int64_t>(mantissa >> 1 >> (63 - within));
    infinities_ += exponent == 0x7ff && (bits & kMantissaMask) == 0;
    nans_ += exponent == 0x7ff && (bits & kMantissaMask) != 0;
  }

  // Adds the words of another sum after carrying them, so that 2^31 sums have room.
  ZG_HOST_DEVICE void AddWords(const int64_t* words);

  // Adds the terms of this sum to `words`, without carrying.
  ZG_HOST_DEVICE void AddTo(int64_t* words) const;

  // Leaves a digit below 2^32 in every word except the last limb's, so that 2^31 of such sums can
  // be added word by word. The value of the sum does not change.
  ZG_HOST_DEVICE void Carry();

  // The sum rounded to f64. NaN if any term is NaN, else infinite if any term is.
  ZG_HOST_DEVICE double Value() const;

 private:
  static constexpr uint64_t kMantissaMask = (uint64_t{1} << 52) - 1;
  // Limb i counts multiples of 2^(32 i - 352). A term's lowest bits, which are zeros, may be in the
  // first limb, and values that are not finite fall into the last ones, so that Add needs no
  // branch.
  static constexpr int64_t kLowestExponent = 1075 - 352;
  static constexpr int kWordLimbs = kExactSumWords - 2;
  int64_t limbs_[(0x7ff - kLowestExponent) / 32 + 3] = {};
  int64_t infinities_ = 0;
  int64_t nans_ = 0;
};

ZG_HOST_DEVICE inline void ExactSum::AddWords(const int64_t* words) {
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

ZG_HOST_DEVICE inline void ExactSum::AddTo(int64_t* words) const {
  for (int i = 0; i < kWordLimbs; ++i) words[i] += limbs_[1 + i];
  words[kWordLimbs] += infinities_;
  words[kWordLimbs + 1] += nans_;
}

ZG_HOST_DEVICE inline void ExactSum::Carry() {
  int64_t words[kExactSumWords] = {};
  AddTo(words);
  *this = ExactSum();
  AddWords(words);
}

ZG_HOST_DEVICE inline double ExactSum::Value() const {
  if (nans_ > 0) return std::numeric_limits<double>::quiet_NaN();
  if (infinities_ > 0) return std::numeric_limits<double>::infinity();
  ExactSum carried = *this;
  carried.Carry();
  double value = 0;
  for (int i = 0; i < kWordLimbs; ++i) {
    value += std::ldexp(static_cast<double>(carried.limbs_[1 + i]), 32 * i - 320);
  }
  return value;
}

}  // namespace zg
