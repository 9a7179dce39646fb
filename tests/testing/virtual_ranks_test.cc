#include "tests/testing/virtual_ranks.h"

#include <gtest/gtest.h>

namespace zg::testing {
namespace {

const TensorType& Type() {
  static const auto& type = *new TensorType{DType::kF32, {2, 6}};
  return type;
}

HeapTensor Whole() {
  return HeapTensor::FromDoubles(Type(), {0, 1, 2, 3, 4, 5, 10, 11, 12, 13, 14, 15});
}

TEST(VirtualRanksTest, SplitsAlongAnyDim) {
  std::mt19937 random(1);
  const std::vector<HeapTensor> rows = Cut(Whole(), Sbp::S(0), 2, &random);
  EXPECT_EQ(rows[1].ToDoubles(), (std::vector<double>{10, 11, 12, 13, 14, 15}));
  const std::vector<HeapTensor> columns = Cut(Whole(), Sbp::S(1), 3, &random);
  EXPECT_EQ(columns[1].type().shape, (Shape{2, 2}));
  EXPECT_EQ(columns[1].ToDoubles(), (std::vector<double>{2, 3, 12, 13}));
  EXPECT_TRUE(SameBits(Join(rows, Sbp::S(0)).value(), Whole()));
  EXPECT_TRUE(SameBits(Join(columns, Sbp::S(1)).value(), Whole()));
}

TEST(VirtualRanksTest, TermsOfAPartialValueAddUp) {
  std::mt19937 random(1);
  const std::vector<HeapTensor> terms = Cut(Whole(), Sbp::P(), 3, &random);
  const std::vector<double> sum = Join(terms, Sbp::P()).value().ToDoubles();
  const std::vector<double> expected = Whole().ToDoubles();
  for (size_t i = 0; i < sum.size(); ++i) {
    EXPECT_NEAR(sum[i], expected[i], 1e-5);
    EXPECT_NE(terms[0].ToDoubles()[i], 0.0);
  }
}

TEST(VirtualRanksTest, PartsOfABroadcastValueMustBeAlike) {
  std::mt19937 random(1);
  std::vector<HeapTensor> parts = Cut(Whole(), Sbp::B(), 2, &random);
  EXPECT_TRUE(SameBits(Join(parts, Sbp::B()).value(), Whole()));
  static_cast<float*>(parts[1].data())[7] += 1.0f;
  EXPECT_EQ(Join(parts, Sbp::B()).status().message(),
            "broadcast parts f32[2,6] of ranks 0 and 1 differ");
}

TEST(VirtualRanksTest, OnlyEqualPartsDivide) {
  EXPECT_TRUE(Divides({2, 6}, Sbp::S(1), 3));
  EXPECT_FALSE(Divides({2, 6}, Sbp::S(0), 3));
  EXPECT_TRUE(Divides({2, 6}, Sbp::P(), 5));
}

}  // namespace
}  // namespace zg::testing
