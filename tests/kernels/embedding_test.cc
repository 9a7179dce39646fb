#include <gtest/gtest.h>

#include <vector>

#include "tests/kernels/kernel_runner.h"

namespace zg::testing {
namespace {

TEST(Embedding, GathersAndScatters) {
  const TensorType table = F32({5, 3}), ids = I64({2, 2}), y = F32({2, 2, 3});
  const std::vector<float> rows = Random(15, 1), dy = Random(12, 2);
  const std::vector<int64_t> id_values = {4, 0, 4, 2};
  KernelRunner gather("embedding", {table, ids}, {y}, {});
  gather.SetInput(0, rows);
  gather.SetInput(1, id_values);
  ASSERT_TRUE(gather.Run().ok());
  KernelRunner scatter("embedding_grad", {y, ids}, {table}, {{"rows", int64_t{5}}});
  scatter.SetInput(0, dy);
  scatter.SetInput(1, id_values);
  ASSERT_TRUE(scatter.Run().ok());
  std::vector<float> y_want;
  std::vector<double> dtable(15);
  for (int i = 0; i < 4; ++i) {
    for (int c = 0; c < 3; ++c) {
      y_want.push_back(rows[id_values[i] * 3 + c]);
      dtable[id_values[i] * 3 + c] += dy[i * 3 + c];
    }
  }
  ExpectSameBits(gather.output(0), y_want);
  ExpectNear(scatter.output(0), dtable, 1e-7, 1e-6);

  gather.SetInput(1, std::vector<int64_t>{4, 0, 1, 5});
  EXPECT_EQ(gather.Run().message(),
            "embedding: the id at position 3 is 5, the table has rows 0 to 4");
  scatter.SetInput(1, std::vector<int64_t>{4, -1, 1, 0});
  EXPECT_EQ(scatter.Run().message(),
            "embedding_grad: the id at position 1 is -1, the table has rows 0 to 4");
}

}  // namespace
}  // namespace zg::testing
