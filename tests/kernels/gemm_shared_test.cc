#include "framework/kernels/cpu/gemm_shared.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "framework/kernels/cpu/convert.h"
#include "framework/kernels/cpu/sharing.h"
#include "tests/kernels/arithmetics.h"
#include "tests/kernels/kernel_runner.h"

namespace zg::testing {
namespace {

std::vector<char> RandomBytes(DType dtype, int64_t count, uint64_t seed) {
  const std::vector<float> values = Random(count, seed);
  std::vector<char> bytes(count * SizeOf(dtype));
  ConvertFloats(DType::kF32, values.data(), dtype, bytes.data(), count);
  return bytes;
}

class SharedGemmTest : public ::testing::TestWithParam<Arithmetic> {};
INSTANTIATE_TEST_SUITE_P(Arithmetics, SharedGemmTest, ::testing::ValuesIn(Arithmetics()),
                         [](const auto& info) { return info.param.name; });

TEST_P(SharedGemmTest, HasTheBitsOfOneGemm) {
  ShareSmallWork(true);
  const auto& [name, dtype, method] = GetParam();
  const std::vector<GemmSizes> shapes = {
      {1, 1, 1},     {1, 200, 70},  {7, 33, 5},     {48, 97, 130},   {49, 64, 33},
      {65, 31, 400}, {300, 20, 50}, {130, 257, 65}, {96, 130, 1000}, {64, 96, 0},
  };
  for (GemmSizes sizes : shapes) {
    for (const int transposed : {0, 1, 2, 3}) {
      sizes.transpose_a = transposed % 2 == 1;
      sizes.transpose_b = transposed >= 2;
      sizes.dtype = dtype;
      const std::vector<char> a = RandomBytes(dtype, sizes.m * sizes.k, 1);
      const std::vector<char> b = RandomBytes(dtype, sizes.n * sizes.k, 2);
      const std::vector<char> bias = RandomBytes(dtype, sizes.n, 3);
      const GemmOperand left = {a.data(), sizes.transpose_a ? sizes.m : sizes.k};
      const GemmOperand right = {b.data(), sizes.transpose_b ? sizes.k : sizes.n};
      std::vector<char> want(sizes.m * sizes.n * SizeOf(dtype));
      const Gemm one(sizes, *method);
      GuardedBuffer scratch(one.workspace_bytes());
      one.Run(left, right, bias.data(), want.data(), sizes.n, scratch.data());
      for (const int count : {1, 2, 3, 4, 6}) {
        SCOPED_TRACE(::testing::Message() << sizes.m << " x " << sizes.n << " x " << sizes.k << ", "
                                          << transposed << ", " << count << " threads");
        Threads threads(count);
        const SharedGemm shared(sizes, *method, count);
        EXPECT_LE(shared.num_parts(), count);
        // Also without the threads that it was made for.
        for (Threads* with : {&threads, static_cast<Threads*>(nullptr)}) {
          GuardedBuffer workspace(shared.workspace_bytes());
          GuardedBuffer c(sizes.m * sizes.n * SizeOf(dtype));
          shared.Run(left, right, bias.data(), c.data(), sizes.n, workspace.data(), with);
          EXPECT_TRUE(workspace.IntactBehindTheEnd());
          EXPECT_TRUE(c.IntactBehindTheEnd());
          ASSERT_EQ(std::memcmp(c.data(), want.data(), want.size()), 0);
        }
      }
    }
  }
  ShareSmallWork(false);
}

TEST(SharedGemm, SmallProductsStayOnOneThread) {
  EXPECT_EQ(SharedGemm({64, 64, 64}, 8).num_parts(), 1);
  EXPECT_EQ(SharedGemm({64, 64, 256}, 8).num_parts(), 2);
  EXPECT_EQ(SharedGemm({2048, 1536, 384}, 8).num_parts(), 8);
  EXPECT_EQ(SharedGemm({2048, 1536, 384}, 7).num_parts(), 7);
  // As many parts as there are cache lines of columns.
  EXPECT_EQ(SharedGemm({1, 64, 1 << 20}, 8).num_parts(), 2);
}

// Threads take equally large parts, in whole tiles.
TEST(Ranges, AreEqualInUnits) {
  for (const int64_t count : {0, 1, 31, 32, 33, 100, 4096}) {
    for (const int64_t unit : {1, 8, 32}) {
      for (const int num_ranges : {1, 2, 3, 7}) {
        int64_t largest = 0, smallest = count;
        EXPECT_EQ(RangeBegin(count, unit, num_ranges, 0), 0);
        EXPECT_EQ(RangeBegin(count, unit, num_ranges, num_ranges), count);
        for (int i = 0; i < num_ranges; ++i) {
          const int64_t begin = RangeBegin(count, unit, num_ranges, i);
          const int64_t end = RangeBegin(count, unit, num_ranges, i + 1);
          EXPECT_EQ(begin % unit == 0 || begin == count, true);
          largest = std::max(largest, end - begin);
          smallest = std::min(smallest, end - begin);
        }
        EXPECT_LT(largest - smallest, 2 * unit);
      }
    }
  }
}

TEST(Ranges, AreShallowWhereWorkIsSmall) {
  EXPECT_EQ(NumSharing(4, 1000, 1, 1), 1);
  EXPECT_EQ(NumSharing(4, 40000, 64, 1), 2);
  EXPECT_EQ(NumSharing(4, 1 << 20, 64, 1), 4);
  EXPECT_EQ(NumSharing(4, 3, 1, 1 << 20), 3);
  EXPECT_EQ(NumSharing(1, 1 << 20, 64, 1), 1);
  EXPECT_EQ(NumSharing(4, 0, 64, 1), 1);
}

}  // namespace
}  // namespace zg::testing
