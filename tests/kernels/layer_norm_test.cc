#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "framework/kernels/cpu/convert.h"
#include "tests/kernels/kernel_runner.h"

namespace zg::testing {
namespace {

constexpr double kEpsilon = 1e-5;

class LayerNormTest : public ::testing::TestWithParam<std::pair<int64_t, int64_t>> {};

TEST_P(LayerNormTest, MatchesTheFormula) {
  const auto [rows, columns] = GetParam();
  const std::vector<float> x = Random(rows * columns, 1, -3.0f, 5.0f);
  const std::vector<float> gamma = Random(columns, 2);
  const std::vector<float> beta = Random(columns, 3);
  const std::vector<float> dy = Random(rows * columns, 4);
  std::vector<double> y, means, rstds, dx, dgamma(columns), dbeta(columns);
  for (int64_t row = 0; row < rows; ++row) {
    const float* const values = &x[row * columns];
    double mean = 0.0, variance = 0.0;
    for (int64_t j = 0; j < columns; ++j) mean += values[j] / static_cast<double>(columns);
    for (int64_t j = 0; j < columns; ++j) {
      variance += (values[j] - mean) * (values[j] - mean) / static_cast<double>(columns);
    }
    const double rstd = 1.0 / std::sqrt(variance + kEpsilon);
    double mean_d = 0.0, mean_dn = 0.0;
    for (int64_t j = 0; j < columns; ++j) {
      const double n = (values[j] - mean) * rstd;
      const double d = static_cast<double>(dy[row * columns + j]) * gamma[j];
      y.push_back(n * gamma[j] + beta[j]);
      mean_d += d / static_cast<double>(columns);
      mean_dn += d * n / static_cast<double>(columns);
      dgamma[j] += dy[row * columns + j] * n;
      dbeta[j] += dy[row * columns + j];
    }
    for (int64_t j = 0; j < columns; ++j) {
      const double n = (values[j] - mean) * rstd;
      const double d = static_cast<double>(dy[row * columns + j]) * gamma[j];
      dx.push_back(rstd * (d - mean_d - n * mean_dn));
    }
    means.push_back(mean);
    rstds.push_back(rstd);
  }

  const TensorType matrix = F32({rows, columns});
  const TensorType vector = F32({columns});
  const TensorType per_row = F32({rows});
  KernelRunner forward("layer_norm", {matrix, vector, vector}, {matrix, per_row, per_row},
                       {{"epsilon", kEpsilon}});
  forward.SetInput(0, x);
  forward.SetInput(1, gamma);
  forward.SetInput(2, beta);
  ASSERT_TRUE(forward.Run().ok());
  // With one column the result is the rounding of 0 times a large rstd.
  const double tolerance = columns == 1 ? 1e-3 : 3e-6;
  ExpectNear(forward.output(0), y, tolerance, 3e-6);
  ExpectNear(forward.output(1), means, 1e-6, 1e-6);
  ExpectNear(forward.output(2), rstds, 1e-6, 1e-5);

  for (const int in_place : {-1, 0, 1}) {
    KernelRunner backward("layer_norm_grad", {matrix, matrix, vector, per_row, per_row},
                          {matrix, vector, vector}, {});
    backward.SetInput(0, dy);
    backward.SetInput(1, x);
    backward.SetInput(2, gamma);
    backward.SetInput(3, forward.output(1));
    backward.SetInput(4, forward.output(2));
    if (in_place >= 0) backward.PutInPlace(0, in_place);
    ASSERT_TRUE(backward.Run().ok());
    ExpectNear(backward.output(0), dx, 10 * tolerance, 1e-5);
    ExpectNear(backward.output(1), dgamma, 1e-5, 1e-5);
    ExpectNear(backward.output(2), dbeta, 1e-5, 1e-5);
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, LayerNormTest,
                         ::testing::Values(std::pair{1, 2}, std::pair{3, 17}, std::pair{40, 64},
                                           std::pair{5, 100}, std::pair{70, 384},
                                           std::pair{2, 1001}));

// In 16 bits: computed in f32, in the same order, and rounded once.
TEST(LayerNorm, HalfIsTheRoundedResult) {
  const int64_t rows = 39, columns = 173;
  const std::vector<std::vector<float>> values = {
      Random(rows * columns, 1),   Random(rows * columns, 2, -3.0f, 5.0f),
      Random(columns, 3),          Random(columns, 4),
      Random(rows, 5, 0.0f, 1.0f), Random(rows, 6, 0.5f, 2.0f)};
  for (const DType dtype : {DType::kBF16, DType::kF16}) {
    const auto run = [&](DType type, const std::string& op, const std::vector<int>& inputs) {
      const TensorType matrix = {type, {rows, columns}};
      const TensorType vector = {type, {columns}};
      const TensorType per_row = F32({rows});
      const bool forward = op == "layer_norm";
      KernelRunner runner(op,
                          forward
                              ? std::vector<TensorType>{matrix, vector, vector}
                              : std::vector<TensorType>{matrix, matrix, vector, per_row, per_row},
                          forward ? std::vector<TensorType>{matrix, per_row, per_row}
                                  : std::vector<TensorType>{matrix, vector, vector},
                          forward ? ir::Attributes{{"epsilon", kEpsilon}} : ir::Attributes{}, 1);
      for (size_t i = 0; i < inputs.size(); ++i) {
        std::vector<float> input = values[inputs[i]];
        if (i < 3) RoundFloats(dtype, input.data(), static_cast<int64_t>(input.size()));
        runner.SetInput(static_cast<int>(i), input);
      }
      EXPECT_TRUE(runner.Run().ok());
      std::vector<std::vector<float>> outputs;
      for (int i = 0; i < 3; ++i) outputs.push_back(runner.output(i));
      return outputs;
    };
    for (const auto& [op, inputs] : std::vector<std::pair<std::string, std::vector<int>>>{
             {"layer_norm", {1, 2, 3}}, {"layer_norm_grad", {0, 1, 2, 4, 5}}}) {
      const auto half = run(dtype, op, inputs);
      auto want = run(DType::kF32, op, inputs);
      for (int i = 0; i < 3; ++i) {
        SCOPED_TRACE(op + " output " + std::to_string(i));
        if (op != "layer_norm" || i == 0) {
          RoundFloats(dtype, want[i].data(), static_cast<int64_t>(want[i].size()));
        }
        ExpectSameBits(half[i], want[i]);
      }
    }
  }
}

TEST(LayerNorm, RowsDoNotDependOnTheirNumberOrAlignment) {
  const int64_t columns = 77;
  const std::vector<float> x = Random(9 * columns, 1);
  const std::vector<float> gamma = Random(columns, 2);
  std::vector<std::vector<float>> ys;
  for (const int64_t rows : {9, 2}) {
    KernelRunner runner("layer_norm", {F32({rows, columns}), F32({columns}), F32({columns})},
                        {F32({rows, columns}), F32({rows}), F32({rows})}, {{"epsilon", kEpsilon}},
                        rows % 4);
    runner.SetInput(0, std::vector<float>(x.begin(), x.begin() + rows * columns));
    runner.SetInput(1, gamma);
    runner.SetInput(2, gamma);
    ASSERT_TRUE(runner.Run().ok());
    ys.push_back(runner.output(0));
    ys.back().resize(2 * columns);
  }
  ExpectSameBits(ys[0], ys[1]);
}

}  // namespace
}  // namespace zg::testing
