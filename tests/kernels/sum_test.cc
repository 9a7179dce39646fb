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

}  // namespace
}  // namespace zg::testing
