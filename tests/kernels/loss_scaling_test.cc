#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "framework/base/exact_sum.h"
#include "tests/kernels/kernel_runner.h"

namespace zg::testing {
namespace {

constexpr int64_t kInitialExponent = 10;
constexpr int64_t kGrowthInterval = 4;
constexpr int64_t kMaxSkipped = 3;

// A loss scaler over many steps, its state in place.
class LossScaler {
 public:
  LossScaler()
      : control_("scaled_update_control", {I64({kExactSumWords}), F32({4})},
                 {F32({2}), F32({}), F32({4})},
                 {{"max_norm", 0.0},
                  {"growth_interval", kGrowthInterval},
                  {"max_skipped", kMaxSkipped},
                  {"initial_exponent", kInitialExponent}}),
        seed_("loss_seed", {F32({4})}, {F32({})},
              {{"value", 1.0}, {"initial_exponent", kInitialExponent}}) {
    control_.SetInput(1, std::vector<float>(4, 0.0f));
    control_.PutInPlace(2, 1);
  }

  // A step whose only gradient is `gradient`.
  Status Step(double gradient) {
    ExactSum sum;
    sum.Add(gradient * gradient);
    std::vector<int64_t> words(kExactSumWords, 0);
    sum.AddTo(words.data());
    control_.SetInput(0, words);
    return control_.Run();
  }

  float factor() const { return control_.output(0)[0]; }
  float update_number() const { return control_.output(0)[1]; }
  float norm() const { return control_.output(1)[0]; }
  float scale() {
    seed_.SetInput(0, control_.output(2));
    EXPECT_TRUE(seed_.Run().ok());
    return seed_.output(0)[0];
  }

 private:
  KernelRunner control_;
  KernelRunner seed_;
};

TEST(LossScaling, StepsThatOverflowHalveTheScaleAndCountForNothing) {
  LossScaler scaler;
  ASSERT_TRUE(scaler.Step(3.0 * 1024).ok());
  EXPECT_EQ(scaler.factor(), 1.0f / 1024);
  EXPECT_EQ(scaler.norm(), 3.0f);
  EXPECT_EQ(scaler.update_number(), 1.0f);
  for (const double overflow : {double{HUGE_VAL}, double{NAN}}) {
    ASSERT_TRUE(scaler.Step(overflow).ok());
    EXPECT_EQ(scaler.factor(), 0.0f);
  }
  EXPECT_EQ(scaler.scale(), 256.0f);
  ASSERT_TRUE(scaler.Step(3.0 * 256).ok());
  EXPECT_EQ(scaler.factor(), 1.0f / 256);
  EXPECT_EQ(scaler.norm(), 3.0f);
  EXPECT_EQ(scaler.update_number(), 2.0f);  // as if the skipped steps had not happened
}

TEST(LossScaling, TheScaleDoublesAfterUpdatesInARow) {
  LossScaler scaler;
  for (int step = 0; step < kGrowthInterval - 1; ++step) ASSERT_TRUE(scaler.Step(1.0).ok());
  EXPECT_EQ(scaler.scale(), 1024.0f);
  ASSERT_TRUE(scaler.Step(HUGE_VAL).ok());  // begins the count again
  EXPECT_EQ(scaler.scale(), 512.0f);
  for (int step = 0; step < kGrowthInterval - 1; ++step) ASSERT_TRUE(scaler.Step(1.0).ok());
  EXPECT_EQ(scaler.scale(), 512.0f);
  ASSERT_TRUE(scaler.Step(1.0).ok());
  EXPECT_EQ(scaler.factor(), 1.0f / 512);  // this step's gradients were still multiplied by 512
  EXPECT_EQ(scaler.scale(), 1024.0f);
}

TEST(LossScaling, OnlyStepsInARowCountAsTooMany) {
  LossScaler scaler;
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < kMaxSkipped; ++i) ASSERT_TRUE(scaler.Step(HUGE_VAL).ok());
    ASSERT_TRUE(scaler.Step(1.0).ok());
  }
}

TEST(LossScaling, TooManyStepsInARowAreAnError) {
  LossScaler scaler;
  for (int i = 0; i < kMaxSkipped; ++i) ASSERT_TRUE(scaler.Step(NAN).ok());
  const Status status = scaler.Step(NAN);
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(status.message(),
            "the gradients were not finite in 4 steps in a row, down to a loss scale of 2^7\n"
            "  hint: lower the learning rate, clip gradients, or compute in bf16 or f32");
}

}  // namespace
}  // namespace zg::testing
