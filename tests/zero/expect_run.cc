#include "tests/zero/expect_run.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "tests/testing/as_planned.h"

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
  ExpectTraffic(result.predicted_traffic, steps, result.measured_traffic);
  for (const AxesTraffic& traffic : result.traffic_by_axes) {
    EXPECT_EQ(traffic.predicted * steps, traffic.measured) << "along " << traffic.axes;
  }
}

namespace {

void ExpectSameAtEveryStage(const RunResult& expected, RunConfig config) {
  for (config.stage = 0; config.stage <= 3; ++config.stage) {
    SCOPED_TRACE(fmt::format("stage {}", config.stage));
    const RunResult result = TrainOrDie(config);
    ExpectSameBits(expected, result);
    ExpectPlanIsMeasured(result, config.steps);
  }
}

}  // namespace

void ExpectSameOnRanks(const std::vector<int>& ranks, RunConfig config, const RunResult& expected) {
  for (const int num_ranks : ranks) {
    SCOPED_TRACE(fmt::format("{} ranks", num_ranks));
    config.ranks = num_ranks;
    ExpectSameAtEveryStage(expected, config);
  }
}

void ExpectSameOnMeshes(const std::vector<std::vector<MeshAxis>>& meshes, RunConfig config,
                        const RunResult& expected) {
  for (const std::vector<MeshAxis>& mesh : meshes) {
    SCOPED_TRACE(fmt::format("mesh({})", Mesh(mesh).ToString()));
    config.mesh = mesh;
    config.ranks = Mesh(mesh).num_ranks();
    ExpectSameAtEveryStage(expected, config);
  }
}

}  // namespace zg::testing
