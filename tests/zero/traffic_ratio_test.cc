// The traffic of the stages, for real models: twice the parameters at stages 0 to 2 and three times
// at stage 3 (arXiv 1910.02054, section 7), each times (n - 1) / n. To the byte: the rest is the
// loss, and buckets that a backward pass does not read.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include "framework/ir/parser.h"
#include "framework/ops/register_all_ops.h"
#include "tests/zero/expect_run.h"
#include "tests/zero/training.h"

namespace zg::testing {
namespace {

// The bytes that one rank sends in a step, which equal those that it receives.
struct Sent {
  int64_t reduced = 0;   // as terms of sums of gradients
  int64_t gathered = 0;  // as sums or parameters
  int64_t all() const { return reduced + gathered; }
};

struct Buckets {
  int64_t bytes = 0;              // parameters, including their padding
  int64_t bytes_in_backward = 0;  // only buckets that backward reads, too
};

Buckets ReadBuckets(const ir::Graph& graph) {
  Buckets buckets;
  for (const ir::Node* node : graph.section(ir::SectionKind::kVariables)->nodes) {
    const ir::Value& value = *node->outputs[0];
    if (!ir::HasRole(value, Role::kParameter)) continue;
    buckets.bytes += value.type.bytes();
    for (const ir::Node* reader : value.users) {
      if (reader->section->kind != ir::SectionKind::kBackward) continue;
      buckets.bytes_in_backward += value.type.bytes();
      break;
    }
  }
  return buckets;
}

class TrafficRatioTest : public ::testing::TestWithParam<std::tuple<TestModel, int>> {
 protected:
  TrafficRatioTest() { RegisterAllOps(); }

  RunConfig Config(int stage, int64_t bucket_bytes) const {
    RunConfig config;
    config.model = std::get<0>(GetParam());
    config.ranks = num_ranks();
    config.micro_batches = num_ranks();
    config.steps = 1;
    config.stage = stage;
    config.bucket_bytes = bucket_bytes;
    return config;
  }
  int num_ranks() const { return std::get<1>(GetParam()); }
  int64_t Share(int64_t bytes) const { return bytes / num_ranks() * (num_ranks() - 1); }

  // Without the loss, whose only part is on rank 0: it receives the others' terms.
  Sent Run(const RunConfig& config, Buckets* buckets) const {
    const RunResult result = TrainOrDie(config);
    ExpectPlanIsMeasured(result, config.steps);
    *buckets = ReadBuckets(*ir::Parse(result.ir));
    Sent sent;
    for (const auto& [op, traffic] : result.predicted_traffic) {
      if (op == "all_reduce") {
        const int64_t gradients = traffic.bytes - int64_t{sizeof(float)} * (num_ranks() - 1);
        sent.reduced += gradients / 2;
        sent.gathered += gradients / 2;
      } else {
        (op == "reduce_scatter" ? sent.reduced : sent.gathered) += traffic.bytes;
      }
    }
    return sent;
  }
};

INSTANTIATE_TEST_SUITE_P(Models, TrafficRatioTest,
                         ::testing::Combine(::testing::Values(TestModel::kMlp, TestModel::kGpt),
                                            ::testing::Values(2, 3)),
                         [](const auto& info) {
                           const bool is_gpt = std::get<0>(info.param) == TestModel::kGpt;
                           return fmt::format("{}_{}_ranks", is_gpt ? "gpt" : "recipe",
                                              std::get<1>(info.param));
                         });

TEST_P(TrafficRatioTest, OneBucketIsSentTwiceOrThreeTimes) {
  const int64_t kTimes[] = {2, 2, 2, 3};
  for (int stage : {0, 1, 2, 3}) {
    SCOPED_TRACE(fmt::format("stage {}", stage));
    Buckets buckets;
    const Sent sent = Run(Config(stage, int64_t{1} << 30), &buckets);
    EXPECT_EQ(buckets.bytes, buckets.bytes_in_backward);
    EXPECT_EQ(sent.reduced, Share(buckets.bytes));
    EXPECT_EQ(sent.all(), kTimes[stage] * Share(buckets.bytes));
  }
}

TEST_P(TrafficRatioTest, Stage3DoesNotGatherWhatBackwardDoesNotRead) {
  for (int stage : {0, 1, 2, 3}) {
    SCOPED_TRACE(fmt::format("stage {}", stage));
    Buckets buckets;
    const Sent sent = Run(Config(stage, 1024), &buckets);
    EXPECT_EQ(sent.reduced, Share(buckets.bytes));
    const int64_t forward_or_update = Share(buckets.bytes);
    const int64_t backward = stage == 3 ? Share(buckets.bytes_in_backward) : 0;
    EXPECT_EQ(sent.gathered, forward_or_update + backward);
    if (stage != 3) continue;
    // Backward does not read biases and the embedding.
    EXPECT_LT(buckets.bytes_in_backward, buckets.bytes);
    EXPECT_GT(buckets.bytes_in_backward, buckets.bytes / 2);
  }
}

}  // namespace
}  // namespace zg::testing
