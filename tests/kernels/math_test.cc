// The arithmetic that kernels of all devices share (framework/kernels/math), compiled here as
// scalar code, against the CPU's vectorised kernels: bit by bit.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "framework/base/exact_sum.h"
#include "framework/base/random.h"
#include "framework/kernels/math/elementwise_math.h"
#include "framework/kernels/math/optimizer_math.h"
#include "tests/kernels/kernel_runner.h"

namespace zg::testing {
namespace {

constexpr int64_t kCount = 1003;

// Scalar code may call a function where a kernel has an instruction, such as for fused
// multiplications and additions.
TEST(ElementwiseMath, EvaluateHasTheBitsOfTheKernels) {
  constexpr double kAttribute = -0.3;
  for (const ElementwiseRow& row : kElementwiseRows) {
    SCOPED_TRACE(row.op);
    const std::vector<float> a = Random(kCount, 1, -20.0f, 20.0f);
    const std::vector<float> b = Random(kCount, 2, -20.0f, 20.0f);
    ir::Attributes attributes;
    if (!row.attribute.empty()) attributes.Set(std::string(row.attribute), kAttribute);
    KernelRunner runner(std::string(row.op), std::vector<TensorType>(row.num_inputs, F32({kCount})),
                        {F32({kCount})}, attributes);
    runner.SetInput(0, a);
    if (row.num_inputs == 2) runner.SetInput(1, b);
    ASSERT_TRUE(runner.Run().ok());
    std::vector<float> expected;
    for (int64_t i = 0; i < kCount; ++i) {
      const float element = Evaluate(row.code, a[i], b[i], static_cast<float>(kAttribute));
      const bool is_nan = std::isnan(element);
      EXPECT_EQ(std::isnan(runner.output(0)[i]), is_nan) << a[i];
      expected.push_back(is_nan ? runner.output(0)[i] : element);  // which NaN is not defined
    }
    ExpectSameBits(runner.output(0), expected);
  }
}

TEST(ElementwiseMath, OtherOpsHaveNoCode) { EXPECT_EQ(FindElementwiseRow("dropout"), nullptr); }

TEST(OptimizerMath, AdamStepHasTheBitsOfTheKernel) {
  for (const bool decoupled : {false, true}) {
    const AdamAttributes attributes = {0.01, 0.9, 0.99, 1e-8, 0.1, decoupled};
    const std::vector<float> p = Random(kCount, 1), g = Random(kCount, 2), m = Random(kCount, 3),
                             v = Random(kCount, 4, 0.0f, 1.0f);
    const std::vector<TensorType> types(3, F32({kCount}));
    KernelRunner runner("adam_update",
                        {F32({kCount}), F32({kCount}), F32({kCount}), F32({kCount}), F32({2})},
                        types,
                        {{"lr", 0.01},
                         {"beta1", 0.9},
                         {"beta2", 0.99},
                         {"epsilon", 1e-8},
                         {"weight_decay", 0.1},
                         {"decoupled", decoupled}});
    const std::vector<float>* const inputs[] = {&p, &g, &m, &v};
    for (int i = 0; i < 4; ++i) runner.SetInput(i, *inputs[i]);
    runner.SetInput(4, std::vector<float>{0.25f, 3.0f});
    runner.step().lr_factor = 0.5;
    ASSERT_TRUE(runner.Run().ok());
    const AdamFactors factors = MakeAdamFactors(attributes, 0.5, 0.25f, 3.0);
    std::vector<float> outputs[3];
    for (int64_t i = 0; i < kCount; ++i) {
      const AdamResult result = AdamStep({p[i], g[i], m[i], v[i]}, factors);
      outputs[0].push_back(result.p);
      outputs[1].push_back(result.m);
      outputs[2].push_back(result.v);
    }
    for (int i = 0; i < 3; ++i) ExpectSameBits(runner.output(i), outputs[i]);
  }
}

TEST(OptimizerMath, SgdStepsHaveTheBitsOfTheKernels) {
  const std::vector<float> p = Random(kCount, 1), g = Random(kCount, 2), m = Random(kCount, 3);
  const SgdFactors factors = {1.0f, 0.05f, 0.1f, 0.9f};
  for (const bool nesterov : {false, true}) {
    KernelRunner runner(
        "sgd_momentum_update", {F32({kCount}), F32({kCount}), F32({kCount})},
        {F32({kCount}), F32({kCount})},
        {{"lr", 0.05}, {"momentum", 0.9}, {"weight_decay", 0.1}, {"nesterov", nesterov}});
    runner.SetInput(0, p);
    runner.SetInput(1, g);
    runner.SetInput(2, m);
    ASSERT_TRUE(runner.Run().ok());
    std::vector<float> new_p, new_m;
    for (int64_t i = 0; i < kCount; ++i) {
      const SgdResult result = nesterov ? SgdNesterovStep(p[i], g[i], m[i], factors)
                                        : SgdMomentumStep(p[i], g[i], m[i], factors);
      new_p.push_back(result.p);
      new_m.push_back(result.m);
    }
    ExpectSameBits(runner.output(0), new_p);
    ExpectSameBits(runner.output(1), new_m);
  }
}

// Like a GPU kernel, computes each block of random words on its own.
TEST(RandomMath, MasksOfDropoutFollowFromSingleBlocks) {
  const double probability = 0.3;
  KernelRunner runner("dropout", {F32({kCount})}, {F32({kCount})},
                      {{"probability", probability}, {"stream", int64_t{5}}});
  runner.SetInput(0, std::vector<float>(kCount, 1.0f));
  runner.step().seed = 11;
  runner.step().step = 3;
  runner.step().micro_batch = 2;
  ASSERT_TRUE(runner.Run().ok());
  constexpr RandomKey kKey = FoldIn(FoldIn(FoldIn(RandomKey{11}, 3), 2), 5);
  const std::vector<float> y = runner.output(0);
  for (int64_t i = 0; i < kCount; ++i) {
    const uint32_t word = RandomBits(kKey, i / 4)[i % 4];
    EXPECT_EQ(y[i] != 0.0f, (word >> 8) >= static_cast<uint32_t>(probability * 0x1p24)) << i;
  }
}

// Terms that 64 threads share: the words have the bits of the CPU's.
TEST(ExactSumMath, WordsOfManySumsAreThoseOfTheKernel) {
  const std::vector<float> g = Random(4096, 1, -1e3f, 1e3f);
  KernelRunner runner("square_sum", {F32({4096})}, {{DType::kI64, {kExactSumWords}}}, {});
  runner.SetInput(0, g);
  ASSERT_TRUE(runner.Run().ok());
  std::vector<ExactSum> sums(64);
  for (size_t term = 0; term < g.size() / 16; ++term) {
    double s[8];
    for (size_t i = 0; i < 8; ++i) {
      const double low = g[term * 16 + i];
      const double high = g[term * 16 + i + 8];
      s[i] = low * low + high * high;
    }
    sums[term % 64].Add(((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7])));
  }
  std::vector<int64_t> words(kExactSumWords);
  for (const ExactSum& sum : sums) sum.AddTo(words.data());
  EXPECT_EQ(runner.i64_output(0), words);
}

}  // namespace
}  // namespace zg::testing
