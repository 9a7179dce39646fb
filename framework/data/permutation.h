// Permutation: a random order of 0 .. size - 1, computed from a key, without a table.
//
// A Feistel network of 8 rounds permutes the numbers of 2h bits, the smallest even number of bits
// that holds `size`; its round function is Philox (base/random.h). If the result is not below
// `size`, the network is applied to it again (cycle walking), at most 4 times on average. Source:
// Black and Rogaway, "Ciphers with arbitrary finite domains", CT-RSA 2002.
#pragma once

#include <cstdint>

#include "framework/base/random.h"

namespace zg {

class Permutation {
 public:
  // size >= 1.
  Permutation(RandomKey key, uint64_t size);

  uint64_t size() const { return size_; }
  // The number at `position`, which must be below size().
  uint64_t At(uint64_t position) const;

 private:
  uint64_t Encrypt(uint64_t number) const;

  RandomKey key_;
  uint64_t size_;
  int half_bits_ = 1;
};

}  // namespace zg
