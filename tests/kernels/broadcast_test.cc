#include <gtest/gtest.h>

#include <vector>

#include "tests/kernels/kernel_runner.h"

namespace zg::testing {
namespace {

TEST(Broadcast, AddAndSum) {
  const int64_t leading = 13, rest = 35;
  const std::vector<float> x = Random(leading * rest, 1);
  const std::vector<float> r = Random(rest, 2);
  std::vector<double> sum_want, column_sums(rest);
  double total = 0.0;
  for (int64_t i = 0; i < leading * rest; ++i) {
    sum_want.push_back(static_cast<double>(x[i]) + r[i % rest]);
    column_sums[i % rest] += x[i];
    total += x[i];
  }
  const TensorType type = F32({leading, 5, 7});
  KernelRunner add("add_broadcast", {type, F32({5, 7})}, {type}, {});
  add.SetInput(0, x);
  add.SetInput(1, r);
  ASSERT_TRUE(add.Run().ok());
  ExpectNear(add.output(0), sum_want, 1e-7, 1e-7);

  KernelRunner sum("sum_leading", {type}, {F32({5, 7})}, {{"shape", Shape{5, 7}}});
  sum.SetInput(0, x);
  ASSERT_TRUE(sum.Run().ok());
  ExpectNear(sum.output(0), column_sums, 2e-6, 1e-6);

  KernelRunner all("sum_leading", {type}, {F32({})}, {{"shape", Shape{}}});
  all.SetInput(0, x);
  ASSERT_TRUE(all.Run().ok());
  ExpectNear(all.output(0), {total}, 1e-5, 1e-6);
}

}  // namespace
}  // namespace zg::testing
