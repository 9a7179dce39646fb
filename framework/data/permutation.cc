#include "framework/data/permutation.h"

#include "framework/base/check.h"

namespace zg {
namespace {

constexpr int kRounds = 8;

}  // namespace

Permutation::Permutation(RandomKey key, uint64_t size) : key_(key), size_(size) {
  ZG_CHECK(size >= 1, "a permutation of {} numbers", size);
  while (half_bits_ < 32 && (size - 1) >> 2 * half_bits_ != 0) ++half_bits_;
}

uint64_t Permutation::At(uint64_t position) const {
  ZG_CHECK(position < size_, "position {} of {}", position, size_);
  uint64_t number = Encrypt(position);
  while (number >= size_) number = Encrypt(number);
  return number;
}

uint64_t Permutation::Encrypt(uint64_t number) const {
  const uint64_t mask = (uint64_t{1} << half_bits_) - 1;
  uint64_t left = number >> half_bits_;
  uint64_t right = number & mask;
  for (uint32_t round = 0; round < kRounds; ++round) {
    const RandomBlock block =
        Philox4x32({static_cast<uint32_t>(right), round, static_cast<uint32_t>(key_.stream),
                    static_cast<uint32_t>(key_.stream >> 32)},
                   {static_cast<uint32_t>(key_.seed), static_cast<uint32_t>(key_.seed >> 32)});
    const uint64_t next = left ^ (block[0] & mask);
    left = right;
    right = next;
  }
  return left << half_bits_ | right;
}

}  // namespace zg
