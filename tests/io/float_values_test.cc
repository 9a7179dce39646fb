// Values of F32, F16 and BF16 from unaligned bytes to f32 and back.

#include "framework/io/float_values.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

namespace zg {
namespace {

constexpr auto kF32 = SafetensorsDType::kF32;
constexpr auto kBF16 = SafetensorsDType::kBF16;
constexpr auto kF16 = SafetensorsDType::kF16;

TEST(FloatValues, SixteenBitsAreExactInF32) {
  for (const SafetensorsDType dtype : {kBF16, kF16}) {
    std::vector<uint8_t> bytes(1 + 2 * 65536);  // misaligned by one byte
    for (int bits = 0; bits < 65536; ++bits) {
      const auto value = static_cast<uint16_t>(bits);
      std::memcpy(bytes.data() + 1 + 2 * bits, &value, 2);
    }
    std::vector<float> values(65536);
    ReadFloatValues(dtype, bytes.data() + 1, values.size(), values.data());
    std::vector<uint8_t> back(2 * 65536);
    ASSERT_TRUE(WriteFloatValues(dtype, values.data(), values.size(), back.data()).ok());
    for (int bits = 0; bits < 65536; ++bits) {
      if (std::isnan(values[bits])) continue;
      ASSERT_EQ(std::memcmp(back.data() + 2 * bits, bytes.data() + 1 + 2 * bits, 2), 0) << bits;
    }
  }
}

TEST(FloatValues, F32KeepsItsBits) {
  const std::vector<float> values = {1.0f, -0.0f, 1e-45f, std::numeric_limits<float>::infinity()};
  std::vector<uint8_t> bytes(17);
  ASSERT_TRUE(WriteFloatValues(kF32, values.data(), 4, bytes.data() + 1).ok());
  std::vector<float> back(4);
  ReadFloatValues(kF32, bytes.data() + 1, 4, back.data());
  EXPECT_EQ(std::memcmp(back.data(), values.data(), 16), 0);
}

TEST(FloatValues, RoundsButDoesNotOverflowSilently) {
  const float values[] = {65519.0f, 65520.0f, std::numeric_limits<float>::infinity()};
  uint8_t bytes[6];
  EXPECT_TRUE(WriteFloatValues(kF16, values, 1, bytes).ok());  // 65504
  EXPECT_EQ(WriteFloatValues(kF16, values, 2, bytes).message(),
            "the value 65520 is beyond F16; choose another dtype");
  EXPECT_TRUE(WriteFloatValues(kF16, values + 2, 1, bytes).ok());  // also infinite as f32
  const float largest = std::numeric_limits<float>::max();
  EXPECT_FALSE(WriteFloatValues(kBF16, &largest, 1, bytes).ok());
}

TEST(FloatValues, OtherTypesAreNoFloats) {
  EXPECT_TRUE(IsFloatValue(kF32) && IsFloatValue(kF16) && IsFloatValue(kBF16));
  EXPECT_FALSE(IsFloatValue(SafetensorsDType::kF64));
  EXPECT_FALSE(IsFloatValue(SafetensorsDType::kI32));
}

}  // namespace
}  // namespace zg
