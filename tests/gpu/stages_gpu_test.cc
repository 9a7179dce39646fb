// Training on a GPU: the same bits at every stage, on one rank over NCCL, and on several ranks that
// share the GPU through the host or have one GPU each and map each other's memory; replayed or not;
// and close to the CPU. Needs a GPU and fails without one.

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <memory>

#include "framework/comm/cuda_peers.h"
#include "framework/comm/host_staged.h"
#include "framework/comm/nccl.h"
#include "framework/device/cuda_device.h"
#include "framework/device/cuda_support.h"
#include "tests/zero/expect_run.h"
#include "tests/zero/training.h"

namespace zg::testing {
namespace {

constexpr double kTimeoutSeconds = 120;

StatusOr<std::unique_ptr<Device>> OpenGpuOf(const Communicator& host) {
  ZG_ASSIGN_OR_RETURN(const int num_devices, NumCudaDevices());
  return OpenCudaDevice(GpuOfRank(host.rank(), num_devices));
}

StatusOr<DeviceRank> OverNccl(Communicator& host) {
  DeviceRank rank;
  ZG_ASSIGN_OR_RETURN(rank.device, OpenGpuOf(host));
  NcclOptions options;
  options.timeout_s = kTimeoutSeconds;
  ZG_ASSIGN_OR_RETURN(rank.communicator, MakeNcclCommunicator(rank.device.get(), &host, options));
  return rank;
}

// Threads of one process need a GPU each; processes that share one are in tools/gpu_check.
StatusOr<DeviceRank> ByPeerMemory(Communicator& host) {
  DeviceRank rank;
  ZG_ASSIGN_OR_RETURN(rank.device, OpenGpuOf(host));
  CudaPeerOptions options;
  options.timeout_s = kTimeoutSeconds;
  ZG_ASSIGN_OR_RETURN(CudaPeers peers, ConnectCudaPeers(rank.device.get(), &host, options));
  if (!peers.problem.empty()) return FailedPrecondition("{}", peers.problem);
  rank.communicator = std::move(peers.communicator);
  return rank;
}

StatusOr<DeviceRank> ThroughHost(Communicator& host) {
  DeviceRank rank;
  ZG_ASSIGN_OR_RETURN(rank.device, OpenGpuOf(host));
  ZG_ASSIGN_OR_RETURN(rank.communicator, MakeHostStagedCommunicator(rank.device.get(), &host));
  return rank;
}

class StagesGpuTest : public ::testing::TestWithParam<std::tuple<TestModel, DType>> {
 protected:
  static RunConfig Config() {
    RunConfig config;
    std::tie(config.model, config.dtype) = GetParam();
    config.micro_batches = 12;
    return config;
  }
  static RunConfig OnOneRank(RunConfig config) {
    config.ranks = 1;
    config.connect_device = OverNccl;
    return config;
  }
};

INSTANTIATE_TEST_SUITE_P(
    Models, StagesGpuTest,
    ::testing::Combine(::testing::Values(TestModel::kMlp, TestModel::kClassifier, TestModel::kGpt),
                       ::testing::Values(DType::kF32, DType::kBF16, DType::kF16)));

TEST_P(StagesGpuTest, SameBitsOnOneRankOverNccl) {
  RunConfig config = OnOneRank(Config());
  ExpectSameOnRanks({1}, config, TrainOrDie(config));
}

TEST_P(StagesGpuTest, SameBitsOnSeveralRanksThroughTheHost) {
  RunConfig config = Config();
  const RunResult expected = TrainOrDie(OnOneRank(config));
  config.connect_device = ThroughHost;
  ExpectSameOnRanks({2, 3, 4}, config, expected);
}

TEST_P(StagesGpuTest, SameBitsOnOneRankAndSeveralByPeerMemory) {
  RunConfig config = Config();
  const RunResult expected = TrainOrDie(OnOneRank(config));
  config.connect_device = ByPeerMemory;
  ExpectSameOnRanks({1}, config, expected);
  const StatusOr<int> num_gpus = NumCudaDevices();
  ASSERT_TRUE(num_gpus.ok()) << num_gpus.status().ToString();
  if (*num_gpus < 2) GTEST_SKIP() << "there is one GPU";
  ExpectSameOnRanks({2}, config, expected);
}

TEST_P(StagesGpuTest, ReplayedStepsAreTheSame) {
  RunConfig config = OnOneRank(Config());
  config.steps = 6;
  const RunResult expected = TrainOrDie(config);
  config.record = true;
  const RunResult result = TrainOrDie(config);
  ExpectSameBits(expected, result);
  ExpectPlanIsMeasured(result, config.steps);
}

TEST_P(StagesGpuTest, CheckpointsResumeWithTheSameBits) {
  const std::string directory = ::testing::TempDir() + "gpu_checkpoints";
  std::filesystem::remove_all(directory);
  std::filesystem::create_directories(directory);
  RunConfig config = Config();
  const RunResult expected = TrainOrDie(OnOneRank(config));
  config.connect_device = ThroughHost;
  config.ranks = 2;
  config.stage = 3;
  config.steps = 2;
  config.save = directory;
  TrainOrDie(config);
  config.save = "";
  config.resume = directory;
  config.steps = 3;
  const RunResult result = TrainOrDie(OnOneRank(config));
  ASSERT_FALSE(result.losses.empty() || expected.losses.empty());
  EXPECT_EQ(result.losses.back(), expected.losses.back());
  EXPECT_EQ(result.param_sha256, expected.param_sha256);
}

// The order of summation differs, in particular inside matrix products: a loss may differ by a few
// units in the last place of the compute dtype, for each of three steps.
TEST_P(StagesGpuTest, LossesAreNearThoseOfTheCpu) {
  const RunConfig config = Config();
  double tolerance = 1e-5;
  if (config.dtype == DType::kBF16) tolerance = 2e-2;
  if (config.dtype == DType::kF16) tolerance = 3e-3;
  const RunResult cpu = TrainOrDie(config);
  const RunResult gpu = TrainOrDie(OnOneRank(config));
  ASSERT_EQ(cpu.losses.size(), gpu.losses.size());
  for (size_t i = 0; i < cpu.losses.size(); ++i) {
    EXPECT_NEAR(gpu.losses[i], cpu.losses[i], tolerance * std::abs(cpu.losses[i])) << "step " << i;
  }
}

}  // namespace
}  // namespace zg::testing
