#include <gtest/gtest.h>

#include <vector>

#include "tests/kernels/kernel_runner.h"

namespace zg::testing {
namespace {

TEST(Constant, Fills) {
  KernelRunner runner("constant", {}, {F32({})}, {{"value", 2.5}});
  ASSERT_TRUE(runner.Run().ok());
  EXPECT_EQ(runner.output(0), std::vector<float>{2.5f});
}

TEST(BucketPack, CopiesAndZeroesTheRest) {
  KernelRunner runner("bucket_pack", {F32({2}), F32({1, 3})}, {F32({10})},
                      {{"offsets", std::vector<int64_t>{1, 5}}, {"size", int64_t{10}}});
  runner.SetInput(0, std::vector<float>{1, 2});
  runner.SetInput(1, std::vector<float>{3, 4, 5});
  ASSERT_TRUE(runner.Run().ok());
  EXPECT_EQ(runner.output(0), (std::vector<float>{0, 1, 2, 0, 0, 3, 4, 5, 0, 0}));
}

TEST(BucketPack, CopiesHalves) {
  KernelRunner runner("bucket_pack", {BF16({2}), BF16({3})}, {BF16({8})},
                      {{"offsets", std::vector<int64_t>{1, 4}}, {"size", int64_t{8}}});
  runner.SetInput(0, std::vector<float>{1, 2});
  runner.SetInput(1, std::vector<float>{3, 4, 5});
  ASSERT_TRUE(runner.Run().ok());
  EXPECT_EQ(runner.output(0), (std::vector<float>{0, 1, 2, 0, 3, 4, 5, 0}));
}

TEST(BucketPack, LeavesWhatIsInPlace) {
  KernelRunner runner("bucket_pack", {F32({2})}, {F32({2})},
                      {{"offsets", std::vector<int64_t>{0}}, {"size", int64_t{2}}});
  runner.SetInput(0, std::vector<float>{1, 2});
  runner.PutInPlace(0, 0);
  ASSERT_TRUE(runner.Run().ok());
  EXPECT_EQ(runner.output(0), (std::vector<float>{1, 2}));
}

TEST(Accumulate, OverwritesFirstThenAdds) {
  KernelRunner runner("accumulate", {F32({3}), F32({3})}, {F32({3})}, {});
  runner.SetInput(0, std::vector<float>{100, 200, 300});
  runner.SetInput(1, std::vector<float>{1, 2, 3});
  runner.PutInPlace(0, 0);
  runner.step().first_micro_step = true;
  ASSERT_TRUE(runner.Run().ok());
  EXPECT_EQ(runner.output(0), (std::vector<float>{1, 2, 3}));
  runner.step().first_micro_step = false;
  ASSERT_TRUE(runner.Run().ok());
  EXPECT_EQ(runner.output(0), (std::vector<float>{2, 4, 6}));
}

// More elements than are widened at once; sums have bits that bf16 lacks.
TEST(Accumulate, AddsHalvesInF32) {
  for (const int64_t count : {1, 2048, 4603}) {
    KernelRunner runner("accumulate", {F32({count}), BF16({count})}, {F32({count})}, {});
    EXPECT_EQ(runner.kernel().workspace_bytes(), 0);
    std::vector<float> expected(count), term(count);
    for (int64_t i = 0; i < count; ++i) term[i] = static_cast<float>(i % 256);  // exact in bf16
    runner.PutInPlace(0, 0);
    runner.SetInput(1, term);
    for (int micro_batch = 0; micro_batch < 3; ++micro_batch) {
      runner.step().first_micro_step = micro_batch == 0;
      ASSERT_TRUE(runner.Run().ok());
      for (int64_t i = 0; i < count; ++i) expected[i] += term[i];
      EXPECT_EQ(runner.output(0), expected);
    }
  }
}

}  // namespace
}  // namespace zg::testing
