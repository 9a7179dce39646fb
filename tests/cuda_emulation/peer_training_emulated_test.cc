// Training on emulated GPUs: ranks that share one and map each other's memory have the bits of one
// rank, at every stage, queued step by step or replayed, and use the memory and traffic of the
// plan. The kernels, the device code and the collectives are those of a GPU.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "framework/comm/cuda_peers.h"
#include "framework/device/cuda_device.h"
#include "framework/kernels/cuda/cuda_kernels.h"
#include "framework/passes/compile_options.h"
#include "tests/cuda_emulation/streams.h"
#include "tests/zero/expect_run.h"
#include "tests/zero/training.h"

namespace zg::testing {
namespace {

StatusOr<DeviceRank> OnSharedGpu(Communicator& host) {
  DeviceRank rank;
  ZG_ASSIGN_OR_RETURN(rank.device, OpenCudaDevice(0));
  CudaPeerOptions options;
  options.timeout_s = 60;
  options.process = fmt::format("process {}", host.rank());
  ZG_ASSIGN_OR_RETURN(CudaPeers peers, ConnectCudaPeers(rank.device.get(), &host, options));
  if (!peers.problem.empty()) return FailedPrecondition("{}", peers.problem);
  rank.communicator = std::move(peers.communicator);
  return rank;
}

class PeerTrainingTest : public ::testing::TestWithParam<std::tuple<TestModel, DType>> {
 protected:
  void TearDown() override { emulation::EndProcesses(); }

  static RunConfig Config() {
    RunConfig config;
    std::tie(config.model, config.dtype) = GetParam();
    config.micro_batches = 4;
    config.connect_device = OnSharedGpu;
    config.kernels = &CudaKernels(/*tf32=*/false);
    return config;
  }
};

INSTANTIATE_TEST_SUITE_P(Models, PeerTrainingTest,
                         ::testing::Combine(::testing::Values(TestModel::kMlp,
                                                              TestModel::kClassifier),
                                            ::testing::Values(DType::kF32, DType::kBF16)));

TEST_P(PeerTrainingTest, SameBitsOnRanksThatShareAGpu) {
  const RunConfig config = Config();
  ExpectSameOnRanks({2, 4}, config, TrainOrDie(config));
}

// Groups along both axes of the mesh: gradients over all ranks, parameters within a pair.
TEST_P(PeerTrainingTest, SameBitsWithSecondaryShards) {
  RunConfig config = Config();
  const RunResult expected = TrainOrDie(config);
  config.mesh = {{"data", 2}, {"shard", 2}};
  config.ranks = 4;
  config.stage = 3;
  config.secondary_axis = "shard";
  const RunResult result = TrainOrDie(config);
  ExpectSameBits(expected, result);
  ExpectPlanIsMeasured(result, config.steps);
}

TEST_P(PeerTrainingTest, SameBitsWhenReplayed) {
  RunConfig config = Config();
  config.steps = 5;
  const RunResult expected = TrainOrDie(config);
  config.record = true;
  config.ranks = 2;
  for (const int stage : {0, 3}) {
    config.stage = stage;
    const RunResult result = TrainOrDie(config);
    ExpectSameBits(expected, result);
    ExpectPlanIsMeasured(result, config.steps);
  }
}

// All collectives are in a queue of their own, which runs as far behind or ahead of the other as
// the synchronisation between them allows.
TEST_P(PeerTrainingTest, SameBitsWithTransfersBesideTheComputation) {
  RunConfig config = Config();
  const RunResult expected = TrainOrDie(config);
  config.overlap_bytes = CompileOptions::kUnlimitedBytes;
  for (int order = 0; order < 3; ++order) {
    SCOPED_TRACE(fmt::format("order {}", order));
    cudaStream_t stream = nullptr;
    cudaStreamCreate(&stream);  // the next order of threads and streams
    ExpectSameOnRanks({2}, config, expected);
  }
  config.ranks = 4;
  config.stage = 3;
  const RunResult result = TrainOrDie(config);
  EXPECT_NE(result.ir.find("start=true"), std::string::npos) << result.ir;
  ExpectSameBits(expected, result);
}

TEST_P(PeerTrainingTest, SameBitsWhenTransfersAreReplayed) {
  RunConfig config = Config();
  config.steps = 5;
  const RunResult expected = TrainOrDie(config);
  config.record = true;
  config.overlap_bytes = CompileOptions::kUnlimitedBytes;
  ExpectSameOnRanks({2}, config, expected);
}

}  // namespace
}  // namespace zg::testing
