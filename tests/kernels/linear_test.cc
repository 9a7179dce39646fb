#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/kernels/kernel_runner.h"

namespace zg::testing {
namespace {

TEST(Linear, WithLeadingDimsAndBias) {
  const TensorType x = F32({2, 3, 5}), weight = F32({4, 5}), y = F32({2, 3, 4});
  const std::vector<float> x_values = Random(30, 1), w = Random(20, 2), b = Random(4, 3);
  const std::vector<float> dy = Random(24, 4);
  std::vector<double> y_want, dx(30), dw(20), db(4);
  for (int64_t m = 0; m < 6; ++m) {
    for (int64_t n = 0; n < 4; ++n) {
      double sum = b[n];
      for (int64_t k = 0; k < 5; ++k) {
        sum += static_cast<double>(x_values[m * 5 + k]) * w[n * 5 + k];
        dx[m * 5 + k] += static_cast<double>(dy[m * 4 + n]) * w[n * 5 + k];
        dw[n * 5 + k] += static_cast<double>(dy[m * 4 + n]) * x_values[m * 5 + k];
      }
      y_want.push_back(sum);
      db[n] += dy[m * 4 + n];
    }
  }
  const auto run = [](const std::string& op, const std::vector<TensorType>& types,
                      const std::vector<std::vector<float>>& values, const TensorType& output) {
    KernelRunner runner(op, types, {output}, {});
    for (size_t i = 0; i < values.size(); ++i) runner.SetInput(static_cast<int>(i), values[i]);
    EXPECT_TRUE(runner.Run().ok());
    return runner.output(0);
  };
  ExpectNear(run("linear", {x, weight, F32({4})}, {x_values, w, b}, y), y_want, 1e-6, 1e-6);
  ExpectNear(run("linear_grad_input", {y, weight}, {dy, w}, x), dx, 1e-6, 1e-6);
  ExpectNear(run("linear_grad_weight", {y, x}, {dy, x_values}, weight), dw, 1e-6, 1e-6);
  ExpectNear(run("linear_grad_bias", {y}, {dy}, F32({4})), db, 1e-6, 1e-6);
}

std::vector<std::vector<float>> RunKernel(const std::string& op,
                                          const std::vector<TensorType>& inputs,
                                          const std::vector<std::vector<float>>& values,
                                          const std::vector<TensorType>& outputs) {
  KernelRunner runner(op, inputs, outputs, {});
  for (size_t i = 0; i < values.size(); ++i) runner.SetInput(static_cast<int>(i), values[i]);
  EXPECT_TRUE(runner.Run().ok());
  std::vector<std::vector<float>> results;
  for (size_t i = 0; i < outputs.size(); ++i) results.push_back(runner.output(static_cast<int>(i)));
  return results;
}

// More elements than one block of the elementwise functions.
TEST(LinearGelu, HasTheBitsOfLinearAndGelu) {
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) {
    SCOPED_TRACE(DTypeName(dtype));
    const TensorType x = {dtype, {37, 33}}, weight = {dtype, {71, 33}}, bias = {dtype, {71}};
    const TensorType y = {dtype, {37, 71}};
    const std::vector<float> a = Random(37 * 33, 1), w = Random(71 * 33, 2), b = Random(71, 3);
    for (const bool has_bias : {true, false}) {
      std::vector<TensorType> types = {x, weight};
      std::vector<std::vector<float>> values = {a, w};
      if (has_bias) {
        types.push_back(bias);
        values.push_back(b);
      }
      const std::vector<std::vector<float>> fused = RunKernel("linear_gelu", types, values, {y, y});
      const std::vector<float> h = RunKernel("linear", types, values, {y})[0];
      ExpectSameBits(fused[1], h);
      ExpectSameBits(fused[0], RunKernel("gelu", {y}, {h}, {y})[0]);
    }
  }
}

TEST(LinearGradInputGelu, HasTheBitsOfLinearGradInputAndGeluGrad) {
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) {
    SCOPED_TRACE(DTypeName(dtype));
    const TensorType dy = {dtype, {37, 33}}, weight = {dtype, {33, 71}}, h = {dtype, {37, 71}};
    const std::vector<float> gradient = Random(37 * 33, 1), w = Random(33 * 71, 2);
    const std::vector<float> point = Random(37 * 71, 3, -4.0f, 4.0f);
    const std::vector<float> fused =
        RunKernel("linear_grad_input_gelu", {dy, weight, h}, {gradient, w, point}, {h})[0];
    const std::vector<float> dx =
        RunKernel("linear_grad_input", {dy, weight}, {gradient, w}, {h})[0];
    ExpectSameBits(fused, RunKernel("gelu_grad", {h, h}, {dx, point}, {h})[0]);
  }
}

}  // namespace
}  // namespace zg::testing
