// Counter-based random numbers (Philox4x32-10): element i of a stream is a pure function of (key,
// i), so a shard gets the bits that the whole tensor would have, on any rank and any processor.
//
//   RandomKey key = FoldIn(FoldIn(RandomKey{seed}, "gpt.block3.mlp.weight"), step);
//   FillNormal(key, shard_begin, shard_end, 0.0f, 0.02f, shard);  // elements [begin, end)
// Source: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace zg {

// Names a stream of 2^64 blocks of four 32-bit words.
struct RandomKey {
  uint64_t seed = 0;
  uint64_t stream = 0;
};

using RandomBlock = std::array<uint32_t, 4>;

// Ten rounds of Philox4x32, as in the paper.
constexpr RandomBlock Philox4x32(RandomBlock counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = uint64_t{0xD2511F53} * counter[0];
    const uint64_t product1 = uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key[0],
               static_cast<uint32_t>(product1),
               static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key[1],
               static_cast<uint32_t>(product0)};
    key = {key[0] + 0x9E3779B9, key[1] + 0xBB67AE85};
  }
  return counter;
}

// Block `index` of the stream: the bits of elements 4 * index .. 4 * index + 3.
constexpr RandomBlock RandomBits(RandomKey key, uint64_t index) {
  return Philox4x32({static_cast<uint32_t>(index), static_cast<uint32_t>(index >> 32),
                     static_cast<uint32_t>(key.stream), static_cast<uint32_t>(key.stream >> 32)},
                    {static_cast<uint32_t>(key.seed), static_cast<uint32_t>(key.seed >> 32)});
}

// A float in [0, 1), a multiple of 2^-24.
constexpr float Uniform01(uint32_t bits) { return static_cast<float>(bits >> 8) * 0x1p-24f; }

// Element `element` of a stream: word element % 4 of block element / 4.
constexpr float UniformAt(RandomKey key, uint64_t element) {
  return Uniform01(RandomBits(key, element / 4)[element % 4]);
}

// A standard normal, by Box-Muller on the two words of the element's pair.
float NormalAt(RandomKey key, uint64_t element);

// An integer in [0, bound), drawn from block `index`. bound > 0; the bias is below bound / 2^64.
uint64_t UniformBelow(RandomKey key, uint64_t index, uint64_t bound);

// Elements [begin, end) of the stream, written to out[0 .. end - begin). The Fill functions give
// the same bits as the At functions, whatever the slice and the instruction set.
void FillBits(RandomKey key, uint64_t begin, uint64_t end, uint32_t* out);
// low + (high - low) * u with u in [0, 1); `high` itself appears only by rounding.
void FillUniform(RandomKey key, uint64_t begin, uint64_t end, float low, float high, float* out);
void FillNormal(RandomKey key, uint64_t begin, uint64_t end, float mean, float stddev, float* out);

// A separate key for each value of `data` (a step, a layer) or `name` (a parameter): the streams of
// different keys are independent. Folding is not commutative.
constexpr RandomKey FoldIn(RandomKey key, uint64_t data) {
  // Uses another seed than the stream's own, so that a folded key is not one of the stream's
  // elements.
  const RandomBlock block = RandomBits({key.seed ^ 0x6a09e667f3bcc908, key.stream}, data);
  return {block[0] | uint64_t{block[1]} << 32, block[2] | uint64_t{block[3]} << 32};
}
RandomKey FoldIn(RandomKey key, std::string_view name);

}  // namespace zg
