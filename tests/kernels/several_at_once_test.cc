// Kernels that compute several small things at once give the bits of one at a time.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/kernels/kernel_runner.h"

namespace zg::testing {
namespace {

using Floats = std::vector<float>;

Floats Slice(const Floats& values, int64_t begin, int64_t count) {
  return Floats(values.begin() + begin, values.begin() + begin + count);
}

Floats Ran(KernelRunner& runner, int output = 0) {
  EXPECT_TRUE(runner.Run().ok());
  return runner.output(output);
}

TEST(SeveralAtOnce, SmallProducts) {
  constexpr int64_t kCount = 5;
  struct Case {
    int64_t m, k, n;
  };
  for (const Case& c : {Case{3, 3, 1}, {4, 4, 4}, {1, 7, 8}, {8, 1, 2}, {2, 8, 5}}) {
    for (const bool transpose_a : {false, true}) {
      for (const bool transpose_b : {false, true}) {
        const Floats a = Random(kCount * c.m * c.k, 1), b = Random(kCount * c.k * c.n, 2);
        const ir::Attributes attributes = {{"transpose_a", transpose_a},
                                           {"transpose_b", transpose_b}};
        const auto product = [&](int64_t count, const Floats& left, const Floats& right) {
          const Shape of_a = transpose_a ? Shape{count, c.k, c.m} : Shape{count, c.m, c.k};
          const Shape of_b = transpose_b ? Shape{count, c.n, c.k} : Shape{count, c.k, c.n};
          KernelRunner runner("matmul", {F32(of_a), F32(of_b)}, {F32({count, c.m, c.n})},
                              attributes);
          runner.SetInput(0, left);
          runner.SetInput(1, right);
          return Ran(runner);
        };
        const Floats all = product(kCount, a, b);
        for (int64_t i = 0; i < kCount; ++i) {
          EXPECT_EQ(
              product(1, Slice(a, i * c.m * c.k, c.m * c.k), Slice(b, i * c.k * c.n, c.k * c.n)),
              Slice(all, i * c.m * c.n, c.m * c.n));
        }
      }
    }
  }
}

TEST(SeveralAtOnce, ShortRowsOfSoftmax) {
  for (const int64_t columns : {1, 2, 4, 7, 8, 9, 12, 15, 16, 17, 21, 32, 33, 50, 63, 64}) {
    const int64_t rows = 2 * (4096 / columns) + 3;
    const Floats x = Random(rows * columns, 1, -5.0f, 5.0f);
    const Floats y = Random(rows * columns, 2, -5.0f, 0.0f);
    for (const std::string op : {"softmax", "softmax_grad", "log_softmax", "log_softmax_grad"}) {
      const bool is_gradient = op.find("_grad") != std::string::npos;
      const auto result = [&](int64_t first, int64_t count) {
        const std::vector<TensorType> inputs(is_gradient ? 2 : 1, F32({count, columns}));
        KernelRunner runner(op, inputs, {F32({count, columns})}, {});
        runner.SetInput(0, Slice(x, first * columns, count * columns));
        if (is_gradient) runner.SetInput(1, Slice(y, first * columns, count * columns));
        return Ran(runner);
      };
      const Floats all = result(0, rows);
      for (const int64_t row : {int64_t{0}, int64_t{1}, rows / 2, rows - 1}) {
        EXPECT_EQ(result(row, 1), Slice(all, row * columns, columns)) << op << " of " << columns;
      }
    }
  }
}

TEST(SeveralAtOnce, ShortRowsOfCrossEntropy) {
  constexpr int64_t kColumns = 10;
  constexpr int64_t kRows = 250;
  const Floats logits = Random(kRows * kColumns, 1, -5.0f, 5.0f);
  const std::vector<int64_t> targets = RandomIds(kRows, kColumns);
  const ir::Attributes attributes = {{"divisor", 1.0}};
  const auto run = [&](int64_t first, int64_t count, int output) {
    KernelRunner runner("softmax_cross_entropy_with_grad",
                        {F32({}), F32({count, kColumns}), I64({count})},
                        {F32({}), F32({count, kColumns})}, attributes);
    runner.SetInput(0, Floats{0.7f});
    runner.SetInput(1, Slice(logits, first * kColumns, count * kColumns));
    runner.SetInput(2,
                    std::vector<int64_t>(targets.begin() + first, targets.begin() + first + count));
    return Ran(runner, output);
  };
  const Floats all = run(0, kRows, 1);
  double sum = 0.0;
  for (int64_t row = 0; row < kRows; ++row) {
    EXPECT_EQ(run(row, 1, 1), Slice(all, row * kColumns, kColumns)) << row;
    sum += run(row, 1, 0)[0];
  }
  EXPECT_NEAR(run(0, kRows, 0)[0], sum, 1e-6 * sum);
}

}  // namespace
}  // namespace zg::testing
