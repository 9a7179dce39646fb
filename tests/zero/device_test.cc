// A trainer whose arena is on a device ends with the bits of one on the host: at every stage and
// number of ranks, recorded or not, through checkpoints, and in its errors.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "framework/comm/host_staged.h"
#include "framework/comm/in_process.h"
#include "framework/nn/nn.h"
#include "framework/ops/register_all_ops.h"
#include "models/gpt/model.h"
#include "tests/testing/fake_device.h"
#include "tests/testing/stuck_communicator.h"
#include "tests/zero/expect_run.h"
#include "tests/zero/training.h"
#include "zero/zerograph/make_trainer.h"

namespace zg::testing {
namespace {

StatusOr<DeviceRank> OnFakeDevice(Communicator& host) {
  DeviceRank rank;
  rank.device = std::make_unique<FakeDevice>();
  ZG_ASSIGN_OR_RETURN(rank.communicator, MakeHostStagedCommunicator(rank.device.get(), &host));
  return rank;
}

RunConfig OnDevice(RunConfig config) {
  config.connect_device = OnFakeDevice;
  config.kernels = &FakeDeviceKernels();
  return config;
}

class DeviceTest : public ::testing::TestWithParam<std::tuple<TestModel, DType>> {
 protected:
  static RunConfig Config() {
    RunConfig config;
    std::tie(config.model, config.dtype) = GetParam();
    config.micro_batches = 12;
    return config;
  }
};

INSTANTIATE_TEST_SUITE_P(Models, DeviceTest,
                         ::testing::Values(std::tuple(TestModel::kMlp, DType::kF32),
                                           std::tuple(TestModel::kClassifier, DType::kF32),
                                           std::tuple(TestModel::kGpt, DType::kF32),
                                           std::tuple(TestModel::kGpt, DType::kBF16),
                                           std::tuple(TestModel::kGpt, DType::kF16)));

TEST_P(DeviceTest, SameBitsAsTheHostAtEveryStageAndNumberOfRanks) {
  RunConfig config = Config();
  const RunResult expected = TrainOrDie(config);
  ExpectSameOnRanks({1, 2, 3, 4}, OnDevice(config), expected);
}

TEST_P(DeviceTest, ClippedAndSummedOncePerStep) {
  RunConfig config = Config();
  config.ranks = 2;
  config.stage = 2;
  config.max_grad_norm = 0.1;
  config.reduce_every = ReduceEvery::kStep;
  const RunResult expected = TrainOrDie(config);
  const RunResult result = TrainOrDie(OnDevice(config));
  ExpectSameBits(expected, result);
  EXPECT_EQ(expected.eval_loss, result.eval_loss);
}

TEST_P(DeviceTest, RecordedStepsAreTheSame) {
  RunConfig config = Config();
  config.micro_batches = 3;  // uses both sets of inputs in turn
  config.steps = 6;
  const RunResult expected = TrainOrDie(config);
  config.record = true;
  const RunResult result = TrainOrDie(OnDevice(config));
  ExpectSameBits(expected, result);
  ExpectPlanIsMeasured(result, config.steps);
}

// The bytes of every file of the only checkpoint in a directory, by name.
std::map<std::string, std::string> FilesOf(const std::string& directory) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
    if (!entry.is_regular_file()) continue;
    std::ifstream file(entry.path(), std::ios::binary);
    files[entry.path().filename()] = std::string(std::istreambuf_iterator<char>(file), {});
  }
  return files;
}

TEST_P(DeviceTest, CheckpointsGoBetweenDeviceAndHost) {
  const std::string root = ::testing::TempDir() + "device_checkpoints";
  std::filesystem::remove_all(root);
  std::filesystem::create_directories(root);
  RunConfig config = Config();
  const RunResult expected = TrainOrDie(config);

  config.steps = 2;
  config.ranks = 3;
  config.stage = 3;
  config.save = root + "/of_host";
  TrainOrDie(config);
  config.save = root + "/of_device";
  TrainOrDie(OnDevice(config));
  EXPECT_EQ(FilesOf(root + "/of_host"), FilesOf(root + "/of_device"));

  config.steps = 3;
  config.ranks = 2;
  config.stage = 1;
  config.save = "";
  for (const char* saved : {"/of_host", "/of_device"}) {
    config.resume = root + saved;
    for (const RunResult& result : {TrainOrDie(config), TrainOrDie(OnDevice(config))}) {
      EXPECT_EQ(result.losses.back(), expected.losses.back());
      EXPECT_EQ(result.param_sha256, expected.param_sha256);
      EXPECT_EQ(result.optimizer_sha256, expected.optimizer_sha256);
    }
  }
}

// A small GPT on one fake device.
struct FakeGpt {
  explicit FakeGpt(int layers = 1)
      : model{{.layers = layers, .heads = 2, .channels = 16, .context = 8, .vocabulary = 11}} {}

  InProcessGroup group{1};
  FakeDevice device;
  std::unique_ptr<Communicator> communicator;
  models::Gpt model;
  int micro_batches = 1;
  OnNonFinite on_non_finite = OnNonFinite::kStop;
  Graph graph{"gpt"};
  std::unique_ptr<Trainer> trainer;
  std::vector<int64_t> x = std::vector<int64_t>(2 * 8, 3);
  std::vector<int64_t> y = std::vector<int64_t>(2 * 8, 4);

  Status Compile(TrainerOptions options = {}) {
    RegisterAllOps();
    ZG_ASSIGN_OR_RETURN(communicator, MakeHostStagedCommunicator(&device, &group.communicator(0)));
    graph.train(optim::AdamW{}, [&](Inputs& in) {
      return cross_entropy(model(in.i64("x", {2, 8})), in.i64("y", {2, 8}));
    });
    graph.config().micro_batches = micro_batches;
    graph.config().on_non_finite = on_non_finite;
    options.kernels = &FakeDeviceKernels();
    ZG_ASSIGN_OR_RETURN(trainer, make_trainer(graph, *communicator, options));
    return Status::Ok();
  }
  Status Step() {
    return trainer->step([&](int64_t) { return trainer->feed({{"x", x}, {"y", y}}); }).status();
  }
};

TEST(DeviceErrors, BadTokenNamesStepOpAndModule) {
  FakeGpt gpt;
  ASSERT_TRUE(gpt.Compile().ok());
  EXPECT_TRUE(gpt.Step().ok());
  gpt.x[5] = 11;
  EXPECT_THAT(gpt.Step().message(), ::testing::HasSubstr("step 2, embedding of token_embedding"));
}

TEST(DeviceErrors, AnInputThatWasNotSet) {
  FakeGpt gpt;
  ASSERT_TRUE(gpt.Compile().ok());
  EXPECT_EQ(gpt.trainer->step({{"x", gpt.x}}).status().message(), "input \"y\" was not set");
}

TEST(DeviceErrors, TooLittleMemorySaysWhichStageWouldFit) {
  RunConfig config;
  config.ranks = config.micro_batches = 2;
  const int64_t arena_bytes = TrainOrDie(OnDevice(config)).predicted_peak;
  config = OnDevice(config);
  config.connect_device = [&](Communicator& host) -> StatusOr<DeviceRank> {
    ZG_ASSIGN_OR_RETURN(DeviceRank rank, OnFakeDevice(host));
    static_cast<FakeDevice&>(*rank.device).set_memory_use({arena_bytes - 1, 0});
    return rank;
  };
  const std::string message = Train(config).status().message();
  EXPECT_THAT(message, ::testing::HasSubstr(fmt::format("{} bytes do not fit", arena_bytes)));
  EXPECT_THAT(message, ::testing::HasSubstr("hint: per rank, stage 1 needs "));
}

// One wait at the end, and one for each set of inputs that is filled.
TEST(DeviceSteps, TheHostWaitsOnceAStep) {
  FakeGpt gpt;
  ASSERT_TRUE(gpt.Compile().ok());
  ASSERT_TRUE(gpt.Step().ok());
  const FakeDevice::Counters before = gpt.device.counters();
  ASSERT_TRUE(gpt.Step().ok());
  const FakeDevice::Counters& after = gpt.device.counters();
  EXPECT_EQ(after.waits - before.waits, 3);
  EXPECT_EQ(after.copies_in - before.copies_in, 4);    // x, y; the context of both programs
  EXPECT_EQ(after.copies_out - before.copies_out, 2);  // the loss, the fault
}

// If no update can fail, the host does not wait for updates, but every reader of their results
// does.
TEST(DeviceSteps, UpdatesGoOnWhileTheHostPreparesTheNextStep) {
  FakeGpt stopping;
  FakeGpt ignoring;
  ignoring.on_non_finite = OnNonFinite::kIgnore;
  ASSERT_TRUE(stopping.Compile().ok());
  ASSERT_TRUE(ignoring.Compile().ok());
  for (int step = 0; step < 4; ++step) {
    ASSERT_TRUE(stopping.Step().ok());
    ASSERT_TRUE(ignoring.Step().ok());
    EXPECT_FALSE(stopping.device.has_work());
    EXPECT_TRUE(ignoring.device.has_work());
  }
  const auto expected = stopping.trainer->digest_parameters();
  const auto digest = ignoring.trainer->digest_parameters();
  ASSERT_TRUE(expected.ok() && digest.ok());
  EXPECT_EQ(digest->sha256, expected->sha256);
  EXPECT_FALSE(ignoring.device.has_work());

  ignoring.x[5] = 11;
  EXPECT_THAT(ignoring.Step().message(),
              ::testing::HasSubstr("step 5, embedding of token_embedding"));
}

// The first use of a kernel or a connection is not recorded. A collective that adds to sums may use
// another path than one that starts them.
TEST(DeviceSteps, NothingIsRecordedBeforeItHasRun) {
  FakeGpt gpt;
  gpt.micro_batches = 3;
  ASSERT_TRUE(gpt.Compile({.record = true}).ok());
  ASSERT_TRUE(gpt.Step().ok());
  // The first and the second micro-batch and the update have run; the third was recorded.
  EXPECT_EQ(gpt.device.counters().recordings, 1);
  ASSERT_TRUE(gpt.Step().ok());
  ASSERT_TRUE(gpt.Step().ok());
  const int64_t recordings = gpt.device.counters().recordings;
  ASSERT_TRUE(gpt.Step().ok());
  EXPECT_EQ(gpt.device.counters().recordings, recordings);
}

// Otherwise the queue could be full of work behind a stuck collective.
TEST(DeviceSteps, TheHostStaysNearADeviceWithMuchToDo) {
  FakeGpt gpt(/*layers=*/20);
  ASSERT_TRUE(gpt.Compile().ok());
  ASSERT_TRUE(gpt.Step().ok());
  const FakeDevice::Counters before = gpt.device.counters();
  ASSERT_TRUE(gpt.Step().ok());
  EXPECT_GT(gpt.device.counters().waits - before.waits, 3);
}

// With many micro-batches the host waits for the device in the middle of a step, and there, too,
// the communicator has a deadline.
TEST(DeviceErrors, WaitsInTheMiddleOfAStepHaveADeadline) {
  RunConfig config = OnDevice({});
  config.connect_device = [](Communicator& host) -> StatusOr<DeviceRank> {
    DeviceRank rank;
    rank.device = std::make_unique<FakeDevice>();
    rank.communicator = std::make_unique<StuckCommunicator>(rank.device.get(), &host);
    return rank;
  };
  config.micro_batches = 1;
  EXPECT_TRUE(Train(config).status().ok());
  config.micro_batches = 2;
  EXPECT_EQ(Train(config).status().message(), "step 1: no progress");
}

TEST(DeviceErrors, WatchingNodesNeedsTheHost) {
  TrainerOptions options;
  options.detect_anomaly = true;
  EXPECT_EQ(FakeGpt().Compile(options).message(),
            "graph gpt: `detect_anomaly` looks at what every node computes while it runs, which "
            "only the host can; run it with `device=cpu`");
  options.detect_anomaly = false;
  options.profile = true;
  EXPECT_EQ(
      FakeGpt().Compile(options).message(),
      "graph gpt: `profile` and `trace` measure every node while it runs, which a device's queue "
      "does not tell; run it with `device=cpu`");
  options.profile = false;
  options.gradient_histograms_every = 1;
  EXPECT_EQ(FakeGpt().Compile(options).message(),
            "graph gpt: `metrics_histograms` are counted on the host while the step runs; run it "
            "with `device=cpu`");
}

TEST(DeviceErrors, Tf32NeedsAGpu) {
  RunConfig config;
  config.tf32 = true;
  EXPECT_EQ(Train(config).status().message(),
            "tf32 is for the tensor cores of a GPU, but the ranks compute on the CPU");
}

TEST(DeviceErrors, RecordingNeedsADevice) {
  RunConfig config;
  config.record = true;
  EXPECT_EQ(Train(config).status().message(),
            "graph test: its programs cannot be recorded (`record`): the host has no queue");
  config.ranks = config.micro_batches = 2;
  EXPECT_EQ(Train(OnDevice(config)).status().message(),
            "graph test: its programs cannot be recorded (`record`): the collectives go "
            "through the host");
}

}  // namespace
}  // namespace zg::testing
