// detect_anomaly and infinities that a model asks for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "framework/comm/in_process.h"
#include "framework/nn/nn.h"
#include "framework/ops/register_all_ops.h"
#include "zero/zerograph/make_trainer.h"

namespace zg {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int64_t kRows = 4, kInputs = 12, kOutputs = 40;

// Scores of a softmax that are masked by -INFINITY, one row of them entirely if `masks_a_row`.
Status TrainMasked(bool masks_a_row) {
  RegisterAllOps();
  return RunRanks(1, [&](Communicator& communicator) -> Status {
    nn::Module root;
    nn::Linear linear(&root, "linear", kInputs, kOutputs);
    Graph graph("masked");
    graph.train(optim::Adam{.lr = 0.01}, [&](Inputs& in) {
      const Var masked = in.boolean("masked", {kRows, kOutputs});
      const Var scores = masked_fill(linear(in.f32("x", {kRows, kInputs})), masked, -INFINITY);
      return mean(square(softmax(2.0 * scores, -1)));
    });
    TrainerOptions options;
    options.detect_anomaly = true;
    ZG_ASSIGN_OR_RETURN(const auto trainer, make_trainer(graph, communicator, options));
    std::vector<uint8_t> masked(kRows * kOutputs);
    for (size_t i = 0; i < masked.size(); ++i) masked[i] = i % 3 == 1;
    if (masks_a_row) std::fill_n(masked.begin() + kOutputs, kOutputs, 1);
    const std::vector<float> x(kRows * kInputs, 0.5f);
    return trainer->step({{"x", x}, {"masked", masked}}).status();
  });
}

TEST(DetectAnomalyTest, InfinitiesThatTheModelAsksForAreNone) {
  const Status fine = TrainMasked(false);
  EXPECT_TRUE(fine.ok()) << fine.message();
  const Status nan = TrainMasked(true);
  EXPECT_THAT(nan.message(), AllOf(HasSubstr("softmax: %softmax, f32[4,40] on this rank, is nan"),
                                   HasSubstr("is -inf at element 1")));
}

}  // namespace
}  // namespace zg
