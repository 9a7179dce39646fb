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

}  // namespace
}  // namespace zg::testing
