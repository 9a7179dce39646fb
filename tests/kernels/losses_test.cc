#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/kernels/kernel_runner.h"

namespace zg::testing {
namespace {

TEST(MseLoss, MatchesTheFormula) {
  for (const int64_t count : {1, 37, 64, 10001}) {
    const std::vector<float> p = Random(count, 1);
    const std::vector<float> t = Random(count, 2);
    double sum = 0.0;
    std::vector<double> dp;
    for (int64_t i = 0; i < count; ++i) {
      const double difference = static_cast<double>(p[i]) - t[i];
      sum += difference * difference;
      dp.push_back(0.5 * 2.0 * difference / 80.0);
    }
    const ir::Attributes attributes = {{"divisor", 80.0}};
    KernelRunner forward("mse_loss", {F32({count}), F32({count})}, {F32({})}, attributes);
    forward.SetInput(0, p);
    forward.SetInput(1, t);
    ASSERT_TRUE(forward.Run().ok());
    ExpectNear(forward.output(0), {sum / 80.0}, 0.0, 2e-6);

    KernelRunner backward("mse_loss_grad", {F32({}), F32({count}), F32({count})}, {F32({count})},
                          attributes);
    backward.SetInput(0, std::vector<float>{0.5f});
    backward.SetInput(1, p);
    backward.SetInput(2, t);
    ASSERT_TRUE(backward.Run().ok());
    ExpectNear(backward.output(0), dp, 1e-9, 1e-6);
  }
}

struct CrossEntropy {
  int64_t rows, classes;
  std::vector<float> logits = Random(rows * classes, 1, -5.0f, 9.0f);
  std::vector<int64_t> targets = RandomIds(rows, classes, 2);
  ir::Attributes attributes = {{"divisor", 12.0}};

  KernelRunner Forward() {
    KernelRunner runner("softmax_cross_entropy", {F32({rows, classes}), I64({rows})},
                        {F32({}), F32({rows})}, attributes);
    runner.SetInput(0, logits);
    runner.SetInput(1, targets);
    return runner;
  }
  KernelRunner Backward(const std::vector<float>& log_sum_exp) {
    KernelRunner runner("softmax_cross_entropy_grad",
                        {F32({}), F32({rows, classes}), I64({rows}), F32({rows})},
                        {F32({rows, classes})}, attributes);
    runner.SetInput(0, std::vector<float>{0.5f});
    runner.SetInput(1, logits);
    runner.SetInput(2, targets);
    runner.SetInput(3, log_sum_exp);
    return runner;
  }
  KernelRunner Both() {
    KernelRunner runner("softmax_cross_entropy_with_grad",
                        {F32({}), F32({rows, classes}), I64({rows})},
                        {F32({}), F32({rows, classes})}, attributes);
    runner.SetInput(0, std::vector<float>{0.5f});
    runner.SetInput(1, logits);
    runner.SetInput(2, targets);
    return runner;
  }
};

TEST(SoftmaxCrossEntropy, MatchesTheFormula) {
  for (const auto& [rows, classes] :
       std::vector<std::pair<int64_t, int64_t>>{{1, 1}, {3, 5}, {20, 256}, {17, 1000}}) {
    CrossEntropy test{rows, classes};
    double loss = 0.0;
    std::vector<double> log_sums, dlogits;
    for (int64_t row = 0; row < rows; ++row) {
      const float* const x = &test.logits[row * classes];
      double sum = 0.0;
      for (int64_t j = 0; j < classes; ++j) sum += std::exp(static_cast<double>(x[j]));
      log_sums.push_back(std::log(sum));
      loss += (std::log(sum) - x[test.targets[row]]) / 12.0;
      for (int64_t j = 0; j < classes; ++j) {
        dlogits.push_back(0.5 / 12.0 *
                          (std::exp(static_cast<double>(x[j])) / sum - (j == test.targets[row])));
      }
    }
    KernelRunner forward = test.Forward();
    ASSERT_TRUE(forward.Run().ok());
    ExpectNear(forward.output(0), {loss}, 1e-6, 1e-6);
    ExpectNear(forward.output(1), log_sums, 1e-6, 1e-6);
    for (const bool in_place : {false, true}) {
      KernelRunner backward = test.Backward(forward.output(1));
      if (in_place) backward.PutInPlace(0, 1);
      ASSERT_TRUE(backward.Run().ok());
      ExpectNear(backward.output(0), dlogits, 3e-8, 3e-6);
    }
  }
}

TEST(SoftmaxCrossEntropy, WithItsGradientHasTheBitsOfBoth) {
  for (const auto& [rows, classes] :
       std::vector<std::pair<int64_t, int64_t>>{{1, 1}, {3, 5}, {20, 256}, {17, 1000}}) {
    CrossEntropy test{rows, classes};
    KernelRunner forward = test.Forward();
    ASSERT_TRUE(forward.Run().ok());
    KernelRunner backward = test.Backward(forward.output(1));
    ASSERT_TRUE(backward.Run().ok());
    for (const bool in_place : {false, true}) {
      KernelRunner both = test.Both();
      if (in_place) both.PutInPlace(1, 1);
      ASSERT_TRUE(both.Run().ok());
      EXPECT_EQ(both.output(0), forward.output(0));
      EXPECT_EQ(both.output(1), backward.output(0));
    }
  }
}

TEST(SoftmaxCrossEntropy, LargeLogitsDoNotOverflow) {
  CrossEntropy test{1, 3};
  test.logits = {1000.0f, -1000.0f, 990.0f};
  test.targets = {2};
  KernelRunner forward = test.Forward();
  ASSERT_TRUE(forward.Run().ok());
  EXPECT_NEAR(forward.output(0)[0], 10.0000454 / 12.0, 1e-4);
}

TEST(SoftmaxCrossEntropy, TargetOutOfRangeIsAnError) {
  CrossEntropy test{4, 10};
  for (const int64_t target : {int64_t{-1}, int64_t{10}}) {
    test.targets = {0, 9, target, 3};
    EXPECT_EQ(test.Forward().Run().message(),
              fmt::format("softmax_cross_entropy: the target at position 2 is {}, the logits have "
                          "classes 0 to 9",
                          target));
    EXPECT_EQ(test.Backward(std::vector<float>(4)).Run().message(),
              fmt::format("softmax_cross_entropy_grad: the target at position 2 is {}, the logits "
                          "have classes 0 to 9",
                          target));
    EXPECT_EQ(test.Both().Run().message(), test.Forward().Run().message());
  }
}

}  // namespace
}  // namespace zg::testing
