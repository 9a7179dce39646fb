#include <gtest/gtest.h>

#include <vector>

#include "tests/kernels/kernel_runner.h"

namespace zg::testing {
namespace {

ir::Attributes Over(std::vector<int64_t> dims) {
  return {{"dims", std::move(dims)}, {"keep_dims", false}, {"factor", 1.0}};
}

TEST(Sum, OfLeadingDimsAndOfAll) {
  const int64_t leading = 13, rest = 35;
  const std::vector<float> x = Random(leading * rest, 1);
  std::vector<double> column_sums(rest);
  double total = 0.0;
  for (int64_t i = 0; i < leading * rest; ++i) {
    column_sums[i % rest] += x[i];
    total += x[i];
  }
  const TensorType type = F32({leading, 5, 7});
  KernelRunner sum("sum", {type}, {F32({5, 7})}, Over({0}));
  sum.SetInput(0, x);
  ASSERT_TRUE(sum.Run().ok());
  ExpectNear(sum.output(0), column_sums, 2e-6, 1e-6);

  KernelRunner all("sum", {type}, {F32({})}, Over({0, 1, 2}));
  all.SetInput(0, x);
  ASSERT_TRUE(all.Run().ok());
  ExpectNear(all.output(0), {total}, 1e-5, 1e-6);
}

// A short row has the bits of the same elements as a column.
TEST(Sum, OfShortRows) {
  for (const int64_t columns : {1, 2, 3, 4, 7, 8, 15, 16, 17}) {
    const int64_t rows = 37;
    std::vector<float> x = Random(rows * columns, 1);
    for (int64_t i = 0; i < columns; ++i) x[i] = -0.0f;
    KernelRunner sum("sum", {F32({rows, columns})}, {F32({rows})}, Over({1}));
    sum.SetInput(0, x);
    ASSERT_TRUE(sum.Run().ok());
    std::vector<float> expected;
    for (int64_t row = 0; row < rows; ++row) {
      KernelRunner one("sum", {F32({columns})}, {F32({})}, Over({0}));
      const auto first = x.begin() + row * columns;
      one.SetInput(0, std::vector<float>(first, first + columns));
      ASSERT_TRUE(one.Run().ok());
      expected.push_back(one.output(0)[0]);
    }
    ExpectSameBits(sum.output(0), expected);
  }
}

}  // namespace
}  // namespace zg::testing
