#include "tests/zero/expect_run.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <string>

namespace zg::testing {

RunResult TrainOrDie(const RunConfig& config) {
  StatusOr<RunResult> result = Train(config);
  EXPECT_TRUE(result.ok()) << result.status().message();
  return result.ok() ? *result : RunResult();
}

void ExpectSameBits(const RunResult& a, const RunResult& b) {
  EXPECT_EQ(a.losses, b.losses);
  EXPECT_EQ(a.grad_norms, b.grad_norms);
  EXPECT_EQ(a.param_sha256, b.param_sha256);
  EXPECT_EQ(a.optimizer_sha256, b.optimizer_sha256);
}

void ExpectPlanIsMeasured(const RunResult& result, int steps) {
  for (int i = 0; i < kNumMemoryCategories; ++i) {
    EXPECT_EQ(result.predicted[i], result.measured[i])
        << MemoryCategoryName(static_cast<MemoryCategory>(i));
  }
  EXPECT_EQ(result.predicted_peak, result.measured_peak);
  for (int i = 0; i < kNumCollectiveKinds; ++i) {
    const auto predicted =
        result.predicted_traffic.find(std::string(CollectiveName(static_cast<CollectiveKind>(i))));
    const PredictedTraffic expected =
        predicted == result.predicted_traffic.end() ? PredictedTraffic() : predicted->second;
    EXPECT_EQ(expected.count * steps, result.measured_traffic[i].count)
        << CollectiveName(static_cast<CollectiveKind>(i));
    EXPECT_EQ(expected.bytes * steps, result.measured_traffic[i].bytes)
        << CollectiveName(static_cast<CollectiveKind>(i));
  }
}

void ExpectSameRuns(const RunResult& expected, RunConfig config, const std::vector<int>& ranks) {
  for (int num_ranks : ranks) {
    for (int stage : {0, 1, 2, 3}) {
      SCOPED_TRACE(fmt::format("{} ranks, stage {}", num_ranks, stage));
      config.ranks = num_ranks;
      config.stage = stage;
      const RunResult result = TrainOrDie(config);
      ExpectSameBits(expected, result);
      ExpectPlanIsMeasured(result, config.steps);
    }
  }
}

}  // namespace zg::testing
