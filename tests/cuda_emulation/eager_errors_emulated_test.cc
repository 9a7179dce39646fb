// Errors of eager execution on a GPU: data that only the device sees, and options it does not have.
#include <gtest/gtest.h>

#include "framework/eager/eager.h"
#include "framework/nn/nn.h"

namespace zg {
namespace {

EagerOptions OnGpu(int index, int threads = 1) {
  EagerOptions options;
  options.gpu = index;
  options.threads = threads;
  return options;
}

struct Words : nn::Module {
  Var forward(Var ids) override { return table(ids); }
  nn::Embedding table{this, "table", 3, 4};
};

TEST(EagerOnGpuDeathTest, ErrorsNameWhatIsWrong) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(Eager(OnGpu(5)), ::testing::ExitedWithCode(1), "error: Eager: .*5");
  EXPECT_EXIT(Eager(OnGpu(0, 2)), ::testing::ExitedWithCode(1),
              "error: Eager: threads are for ranks that compute on the CPU: got 2");
  EXPECT_EXIT(
      {
        Eager eager(OnGpu(0));
        Words words;
        words(eager.i64({2}, {1, 2}));
        words(eager.i64({2}, {1, 9}));
      },
      ::testing::ExitedWithCode(1),
      "error: table: embedding: an id is 9, the table has rows 0 to 2");
}

}  // namespace
}  // namespace zg
