#include "framework/base/random.h"

#include <gtest/gtest.h>
#include <hwy/highway.h>

#include <cmath>
#include <cstddef>
#include <cstring>
#include <set>
#include <vector>

namespace zg {
namespace {

constexpr RandomKey kKey{0x0123456789abcdef, 42};

std::vector<float> Normals(RandomKey key, uint64_t begin, uint64_t end) {
  std::vector<float> values(end - begin);
  FillNormal(key, begin, end, 0.0f, 1.0f, values.data());
  return values;
}

std::vector<float> Uniforms(RandomKey key, uint64_t begin, uint64_t end) {
  std::vector<float> values(end - begin);
  FillUniform(key, begin, end, 0.0f, 1.0f, values.data());
  return values;
}

bool SameBits(const float* a, const float* b, size_t count) {
  return count == 0 || std::memcmp(a, b, count * sizeof(float)) == 0;  // neither may be null
}

uint64_t HashBits(const std::vector<float>& values) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const float value : values) {
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof(bits));
    hash = (hash ^ bits) * 0x100000001b3;
  }
  return hash;
}

// kat_vectors of Random123, the authors' library.
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(Philox4x32({0, 0, 0, 0}, {0, 0}),
            (RandomBlock{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(Philox4x32({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}),
            (RandomBlock{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(Philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (RandomBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, IndexStreamAndSeedAreTheCounterAndTheKey) {
  EXPECT_EQ(RandomBits({0x299f31d0a4093822, 0x0370734413198a2e}, 0x85a308d3243f6a88),
            (RandomBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Uniform01, IsHalfOpen) {
  EXPECT_EQ(Uniform01(0), 0.0f);
  EXPECT_EQ(Uniform01(~0u), 1.0f - 0x1p-24f);
}

TEST(Fill, AnySliceAgreesWithTheWhole) {
  constexpr uint64_t kSize = 203;
  const std::vector<float> normals = Normals(kKey, 0, kSize);
  const std::vector<float> uniforms = Uniforms(kKey, 0, kSize);
  for (uint64_t begin = 0; begin <= kSize; ++begin) {
    for (uint64_t end = begin; end <= kSize; ++end) {
      ASSERT_TRUE(SameBits(Normals(kKey, begin, end).data(), &normals[begin], end - begin))
          << begin << " " << end;
      ASSERT_TRUE(SameBits(Uniforms(kKey, begin, end).data(), &uniforms[begin], end - begin))
          << begin << " " << end;
    }
  }
}

TEST(Fill, AgreesWithTheAtFunctions) {
  // The block counter carries into its high word in the middle of the range.
  for (const uint64_t begin : {uint64_t{0}, (uint64_t{4} << 32) - 50, ~uint64_t{0} - 100}) {
    const std::vector<float> normals = Normals(kKey, begin, begin + 100);
    const std::vector<float> uniforms = Uniforms(kKey, begin, begin + 100);
    std::vector<uint32_t> bits(100);
    FillBits(kKey, begin, begin + 100, bits.data());
    for (size_t i = 0; i < 100; ++i) {
      const uint64_t element = begin + i;
      EXPECT_EQ(bits[i], RandomBits(kKey, element / 4)[element % 4]);
      EXPECT_EQ(uniforms[i], UniformAt(kKey, element));
      EXPECT_EQ(normals[i], NormalAt(kKey, element));
    }
  }
}

TEST(Fill, EveryInstructionSetGivesTheSameBits) {
  const std::vector<float> normals = Normals(kKey, 3, 5003);
  const std::vector<float> uniforms = Uniforms(kKey, 3, 5003);
  for (int64_t targets = hwy::SupportedTargets(); targets != 0; targets &= targets - 1) {
    const int64_t target = targets & -targets;
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(target);
    EXPECT_TRUE(SameBits(Normals(kKey, 3, 5003).data(), normals.data(), 5000))
        << hwy::TargetName(target);
    EXPECT_TRUE(SameBits(Uniforms(kKey, 3, 5003).data(), uniforms.data(), 5000))
        << hwy::TargetName(target);
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

// A change of these values changes every initialisation and data order, and so breaks resumed runs.
TEST(Fill, ValuesAreTheSameOnEveryMachine) {
  EXPECT_EQ(HashBits(Uniforms(kKey, 0, 10000)), 0xc48d3078ffe66dec);
  EXPECT_EQ(HashBits(Normals(kKey, 0, 10000)), 0x247ef2596ac392b2);
}

TEST(FillUniform, CoversTheInterval) {
  std::vector<float> values(1 << 20);
  FillUniform(kKey, 0, values.size(), -2.0f, 6.0f, values.data());
  double sum = 0.0;
  for (const float value : values) {
    ASSERT_GE(value, -2.0f);
    ASSERT_LE(value, 6.0f);
    sum += value;
  }
  EXPECT_NEAR(sum / values.size(), 2.0, 0.02);
}

TEST(FillNormal, IsBoxMullerOfItsPair) {
  const std::vector<float> normals = Normals(kKey, 0, 100000);
  for (size_t i = 0; i < normals.size(); ++i) {
    const RandomBlock block = RandomBits(kKey, i / 4);
    const size_t pair = i % 4 / 2 * 2;
    const double u = static_cast<float>((block[pair] >> 1) | 1) * 0x1p-31;
    const double angle = 2.0 * M_PI * block[pair + 1] * 0x1p-32;
    const double radius = std::sqrt(-2.0 * std::log(u));
    ASSERT_NEAR(normals[i], radius * (i % 2 == 0 ? std::cos(angle) : std::sin(angle)), 1e-6) << i;
  }
}

TEST(FillNormal, HasTheMomentsOfTheNormalDistribution) {
  std::vector<float> values(1 << 20);
  FillNormal(kKey, 0, values.size(), 3.0f, 0.5f, values.data());
  double sum = 0.0, square = 0.0, fourth = 0.0, lag = 0.0;
  double previous = 0.0;
  for (const float value : values) {
    const double standard = (value - 3.0) / 0.5;
    sum += standard;
    square += standard * standard;
    fourth += standard * standard * standard * standard;
    lag += standard * previous;
    previous = standard;
  }
  const double count = static_cast<double>(values.size());
  EXPECT_NEAR(sum / count, 0.0, 0.005);
  EXPECT_NEAR(square / count, 1.0, 0.01);
  EXPECT_NEAR(fourth / count, 3.0, 0.06);
  EXPECT_NEAR(lag / count, 0.0, 0.005);
}

TEST(UniformBelow, StaysBelowAndIsEven) {
  std::vector<int> counts(7);
  for (uint64_t i = 0; i < 70000; ++i) ++counts.at(UniformBelow(kKey, i, 7));
  for (const int count : counts) EXPECT_NEAR(count, 10000, 400);
  EXPECT_EQ(UniformBelow(kKey, 5, 1), 0u);
  EXPECT_GT(UniformBelow(kKey, 5, ~uint64_t{0}), 0u);
}

TEST(FoldIn, GivesEveryValueAndNameItsOwnStream) {
  std::set<uint64_t> streams;
  for (uint64_t step = 0; step < 1000; ++step) streams.insert(FoldIn(kKey, step).stream);
  for (const char* name : {"", "a", "b", "ab", "ba"}) streams.insert(FoldIn(kKey, name).stream);
  streams.insert(kKey.stream);
  EXPECT_EQ(streams.size(), 1006u);
  EXPECT_NE(FoldIn(FoldIn(kKey, 1), 2).seed, FoldIn(FoldIn(kKey, 2), 1).seed);
}

}  // namespace
}  // namespace zg
