#include "framework/kernels/cpu/convert.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "framework/tensor/half.h"

namespace zg {
namespace {

constexpr int kNumPatterns = 1 << 16;

template <typename To, typename From>
To BitCast(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof(to));
  return to;
}

uint32_t BitsOf(float value) { return BitCast<uint32_t>(value); }

// The compiler's own conversion from f16 to f32.
float CompilersF16ToF32(uint16_t bits) { return static_cast<float>(BitCast<_Float16>(bits)); }
uint16_t CompilersF32ToF16(float value) { return BitCast<uint16_t>(static_cast<_Float16>(value)); }

// Rounds to the nearest of the two neighbours in bf16, ties to even, by comparing distances in f64.
// Beyond the largest number the upper neighbour is 2^128.
uint16_t NearestBF16(float value) {
  const uint32_t magnitude = BitsOf(std::abs(value));
  const auto sign = static_cast<uint16_t>(BitsOf(value) >> 16 & 0x8000);
  const auto low = static_cast<uint16_t>(magnitude >> 16);
  if (low == 0x7f80) return sign | low;
  const auto to_double = [](uint32_t half_bits) {
    return half_bits == 0x7f80 ? 0x1p128 : double{BitCast<float>(half_bits << 16)};
  };
  const double exact = BitCast<float>(magnitude);
  const double below = exact - to_double(low);
  const double above = to_double(low + 1u) - exact;
  const bool up = above < below || (above == below && low % 2 == 1);
  return static_cast<uint16_t>(sign | (low + (up ? 1 : 0)));
}

void ExpectSameNumber(float got, float want, uint32_t pattern) {
  if (std::isnan(want)) {
    ASSERT_TRUE(std::isnan(got)) << std::hex << pattern;
    ASSERT_EQ(std::signbit(got), std::signbit(want)) << std::hex << pattern;
  } else {
    ASSERT_EQ(BitsOf(got), BitsOf(want)) << std::hex << pattern;
  }
}

// Numbers around all difficult cases of rounding to 16 bits, of both signs, then random bits.
std::vector<float> HardNumbers() {
  std::vector<uint32_t> magnitudes = {0, 1, 2, 0x007fffff, 0x00800000, 0x7f7fffff, 0x7f800000};
  for (const uint32_t nan : {0x7f800001u, 0x7f80ffffu, 0x7fbfffffu, 0x7fc00000u, 0x7fffffffu}) {
    magnitudes.push_back(nan);
  }
  // The neighbours in f32 of every number of the type and of the midpoint between two of them.
  for (uint32_t pattern = 0; pattern < 0x7f80; ++pattern) {
    for (const uint32_t low : {0u, 1u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu}) {
      magnitudes.push_back(pattern << 16 | low);
    }
  }
  for (uint16_t pattern = 0; pattern < 0x7c00; ++pattern) {
    const double number = CompilersF16ToF32(pattern);
    const double next = pattern == 0x7bff ? 65536.0 : CompilersF16ToF32(pattern + 1);
    for (const double center : {number, (number + next) / 2}) {
      const uint32_t bits = BitsOf(static_cast<float>(center));
      magnitudes.insert(magnitudes.end(), {bits, bits + 1, bits - (bits > 0 ? 1 : 0)});
    }
  }
  std::mt19937 random(5);
  for (int i = 0; i < 1000000; ++i) magnitudes.push_back(random() & 0x7fffffff);
  std::vector<float> numbers;
  for (const uint32_t magnitude : magnitudes) {
    numbers.push_back(BitCast<float>(magnitude));
    numbers.push_back(BitCast<float>(magnitude | 0x80000000u));
  }
  return numbers;
}

TEST(HalfTest, EveryF16IsTheNumberThatTheCompilerSays) {
  for (int pattern = 0; pattern < kNumPatterns; ++pattern) {
    const auto bits = static_cast<uint16_t>(pattern);
    ExpectSameNumber(ToF32(Float16{bits}), CompilersF16ToF32(bits), bits);
  }
}

TEST(HalfTest, EveryBF16IsTheUpperHalfOfAnF32) {
  for (uint32_t pattern = 0; pattern < kNumPatterns; ++pattern) {
    ASSERT_EQ(BitsOf(ToF32(BFloat16{static_cast<uint16_t>(pattern)})), pattern << 16);
  }
}

TEST(HalfTest, EveryNumberOf16BitsSurvivesF32) {
  for (int pattern = 0; pattern < kNumPatterns; ++pattern) {
    const auto bits = static_cast<uint16_t>(pattern);
    if (!std::isnan(ToF32(Float16{bits}))) {
      ASSERT_EQ(FromF32<Float16>(ToF32(Float16{bits})).bits, bits);
    }
    if (!std::isnan(ToF32(BFloat16{bits}))) {
      ASSERT_EQ(FromF32<BFloat16>(ToF32(BFloat16{bits})).bits, bits);
    }
  }
}

TEST(HalfTest, RoundsToF16AsTheCompilerDoes) {
  for (const float number : HardNumbers()) {
    const uint16_t got = FromF32<Float16>(number).bits;
    if (std::isnan(number)) {
      ExpectSameNumber(CompilersF16ToF32(got), number, BitsOf(number));
    } else {
      ASSERT_EQ(got, CompilersF32ToF16(number)) << number;
    }
  }
}

TEST(HalfTest, RoundsToTheNearestBF16) {
  for (const float number : HardNumbers()) {
    const uint16_t got = FromF32<BFloat16>(number).bits;
    if (std::isnan(number)) {
      ExpectSameNumber(ToF32(BFloat16{got}), number, BitsOf(number));
    } else {
      ASSERT_EQ(got, NearestBF16(number)) << number;
    }
  }
}

TEST(HalfTest, TheEndsOfTheRanges) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(FromF32<Float16>(65519.996f).bits, 0x7bff);  // below the middle: the largest number
  EXPECT_EQ(FromF32<Float16>(65520.0f).bits, 0x7c00);
  EXPECT_EQ(FromF32<Float16>(-65520.0f).bits, 0xfc00);
  EXPECT_EQ(FromF32<Float16>(0x1p-25f).bits, 0);  // the middle of 0 and the smallest number
  EXPECT_EQ(FromF32<Float16>(0x1.000002p-25f).bits, 1);
  EXPECT_EQ(FromF32<Float16>(-0.0f).bits, 0x8000);
  EXPECT_EQ(ToF32(Float16{0x7c00}), infinity);
  EXPECT_EQ(FromF32<BFloat16>(std::numeric_limits<float>::max()).bits, 0x7f80);
  EXPECT_EQ(FromF32<BFloat16>(-infinity).bits, 0xff80);
  EXPECT_EQ(FromF32<BFloat16>(-0.0f).bits, 0x8000);
}

const DType kFloats[] = {DType::kF32, DType::kBF16, DType::kF16};

// Elements of `dtype` as bytes, one after the other; each number rounded alone.
std::vector<uint8_t> Stored(DType dtype, const std::vector<float>& numbers) {
  std::vector<uint8_t> bytes(numbers.size() * SizeOf(dtype));
  WithFloatType(dtype, [&](auto zero) {
    using T = decltype(zero);
    for (size_t i = 0; i < numbers.size(); ++i) {
      const T element = FromF32<T>(numbers[i]);
      std::memcpy(bytes.data() + i * sizeof(T), &element, sizeof(T));
    }
  });
  return bytes;
}

std::vector<float> Loaded(DType dtype, const std::vector<uint8_t>& bytes) {
  std::vector<float> numbers(bytes.size() / SizeOf(dtype));
  WithFloatType(dtype, [&](auto zero) {
    using T = decltype(zero);
    for (size_t i = 0; i < numbers.size(); ++i) {
      T element;
      std::memcpy(&element, bytes.data() + i * sizeof(T), sizeof(T));
      numbers[i] = ToF32(element);
    }
  });
  return numbers;
}

// Some of the difficult numbers, finite ones and infinities, beyond f16's precision, too.
std::vector<float> Sample(int64_t count) {
  static const auto& numbers = *new std::vector<float>(HardNumbers());
  std::mt19937 random(static_cast<unsigned>(count));
  std::vector<float> sample;
  while (static_cast<int64_t>(sample.size()) < count) {
    const float number = numbers[random() % numbers.size()];
    if (!std::isnan(number)) sample.push_back(number);
  }
  return sample;
}

// Around the vector widths, and around the block in which one 16-bit type is converted to the
// other.
const int64_t kCounts[] = {0, 1, 2, 7, 8, 15, 16, 17, 31, 33, 63, 65, 1023, 1024, 1025, 3001};

TEST(ConvertTest, ConvertsArraysAsElements) {
  for (const DType from : kFloats) {
    for (const DType to : kFloats) {
      for (const int64_t count : kCounts) {
        SCOPED_TRACE(testing::Message()
                     << count << " of " << DTypeName(from) << " to " << DTypeName(to));
        const std::vector<uint8_t> source = Stored(from, Sample(count));
        std::vector<uint8_t> expected = Stored(to, Loaded(from, source));
        std::vector<uint8_t> target(expected.size() + 1, 0xa5);
        expected.push_back(0xa5);  // nothing is written after the end
        ConvertFloats(from, source.data(), to, target.data(), count);
        EXPECT_EQ(target, expected);
      }
    }
  }
}

TEST(ConvertTest, RoundsArraysInPlace) {
  for (const DType dtype : kFloats) {
    for (const int64_t count : kCounts) {
      SCOPED_TRACE(testing::Message() << count << " to " << DTypeName(dtype));
      std::vector<float> numbers = Sample(count);
      const std::vector<uint8_t> expected =
          Stored(DType::kF32, Loaded(dtype, Stored(dtype, numbers)));
      RoundFloats(dtype, numbers.data(), count);
      EXPECT_EQ(Stored(DType::kF32, numbers), expected);
    }
  }
}

TEST(ConvertTest, ANaNStaysNaNInArrays) {
  for (const DType dtype : {DType::kBF16, DType::kF16}) {
    // Payloads that rounding alone would turn into infinity or, by a carry, into a zero.
    for (const uint32_t bits : {0x7f800001u, 0xff800001u, 0x7fffffffu, 0xffffffffu}) {
      const std::vector<float> numbers(37, BitCast<float>(bits));
      std::vector<uint8_t> half(numbers.size() * 2);
      ConvertFloats(DType::kF32, numbers.data(), dtype, half.data(), 37);
      for (const float number : Loaded(dtype, half)) ExpectSameNumber(number, numbers[0], bits);
      std::vector<float> rounded = numbers;
      RoundFloats(dtype, rounded.data(), 37);
      for (const float number : rounded) ExpectSameNumber(number, numbers[0], bits);
    }
  }
}

}  // namespace
}  // namespace zg
