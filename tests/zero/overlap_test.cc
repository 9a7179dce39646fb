// Collectives beside the computation: the same bits as in their places, whenever messages arrive;
// memory and traffic as planned.

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <string_view>
#include <thread>
#include <vector>

#include "framework/comm/communicator.h"
#include "tests/testing/communicator_over.h"
#include "tests/testing/delayed_communicator.h"
#include "tests/testing/sanitizer.h"
#include "tests/zero/expect_run.h"
#include "tests/zero/training.h"

namespace zg::testing {
namespace {

constexpr int64_t kUnlimited = CompileOptions::kUnlimitedBytes;

bool Overlaps(const RunResult& run) { return run.ir.find("start=true") != std::string::npos; }

void ExpectSameTraffic(const RunResult& a, const RunResult& b) {
  for (int i = 0; i < kNumCollectiveKinds; ++i) {
    EXPECT_EQ(a.measured_traffic[i].count, b.measured_traffic[i].count);
    EXPECT_EQ(a.measured_traffic[i].bytes, b.measured_traffic[i].bytes);
  }
}

class OverlapTest : public ::testing::TestWithParam<std::tuple<TestModel, DType>> {
 protected:
  static RunConfig Config() {
    RunConfig config;
    config.model = std::get<0>(GetParam());
    config.dtype = std::get<1>(GetParam());
    config.bucket_bytes = 700;
    return config;
  }

  static void ExpectSame(const RunResult& expected, const RunConfig& config) {
    const RunResult run = TrainOrDie(config);
    EXPECT_TRUE(Overlaps(run));
    ExpectSameBits(expected, run);
    EXPECT_EQ(expected.eval_loss, run.eval_loss);
    ExpectPlanIsMeasured(run, config.steps);
    ExpectSameTraffic(expected, run);
    if (config.overlap_bytes == kUnlimited) return;
    EXPECT_LE(run.lower_bound, expected.lower_bound + config.overlap_bytes);
  }
};

std::string NameOf(const ::testing::TestParamInfo<std::tuple<TestModel, DType>>& info) {
  const auto [model, dtype] = info.param;
  const char* const name = model == TestModel::kMlp   ? "Mlp"
                           : model == TestModel::kGpt ? "Gpt"
                                                      : "Llama";
  return fmt::format("{}_{}", name, DTypeName(dtype));
}

// Sanitizers make runs more than ten times as slow, so they run a sample.
const std::vector<int> kRanks = AllOrSample({2, 3, 4}, {3});
const std::vector<int> kStages = AllOrSample({0, 1, 2, 3}, {0, 3});
constexpr int kDelayedRuns = kHasSanitizer ? 5 : 50;

INSTANTIATE_TEST_SUITE_P(ModelsAndDTypes, OverlapTest,
                         ::testing::Combine(::testing::Values(TestModel::kMlp, TestModel::kGpt,
                                                              TestModel::kLlama),
                                            ::testing::Values(DType::kF32, DType::kBF16)),
                         NameOf);

TEST_P(OverlapTest, ChangesNoBitAtAnyStage) {
  for (const int ranks : kRanks) {
    for (const int stage : kStages) {
      for (const int64_t micro_steps : {1, 2}) {
        RunConfig config = Config();
        config.ranks = ranks;
        config.stage = stage;
        config.micro_batches = micro_steps * ranks;
        const RunResult off = TrainOrDie(config);
        EXPECT_FALSE(Overlaps(off));
        // Four buckets are what `auto` takes.
        for (const int64_t bytes : {4 * config.bucket_bytes, int64_t{30000}, kUnlimited}) {
          SCOPED_TRACE(fmt::format("{} ranks, stage {}, {} micro-batches, {} bytes", ranks, stage,
                                   config.micro_batches, bytes));
          config.overlap_bytes = bytes;
          ExpectSame(off, config);
        }
      }
    }
  }
}

TEST_P(OverlapTest, GoesWithEveryOption) {
  for (const int stage : {0, 2, 3}) {
    RunConfig config = Config();
    config.ranks = 2;
    config.micro_batches = 2;
    config.stage = stage;
    const auto check = [&](const char* what, const auto& set) {
      SCOPED_TRACE(fmt::format("stage {}, {}", stage, what));
      RunConfig with = config;
      set(with);
      const RunResult off = TrainOrDie(with);
      with.overlap_bytes = 20000;
      ExpectSame(off, with);
    };
    check("recompute", [](RunConfig& run) {
      if (run.model == TestModel::kGpt) run.recompute = "blocks.*";
      if (run.model == TestModel::kLlama) run.recompute = "model.layers.*";
    });
    check("clipping", [](RunConfig& run) { run.max_grad_norm = 0.5; });
    check("early updates", [](RunConfig& run) { run.update_early = true; });
    check("sums once per step", [](RunConfig& run) {
      run.micro_batches = 4;
      run.reduce_every = ReduceEvery::kStep;
    });
    check("small parameters whole", [](RunConfig& run) { run.shard_min_elements = 50; });
    check("two axes", [](RunConfig& run) {
      run.ranks = run.micro_batches = 4;
      run.mesh = {{"replica", 2}, {"shard", 2}};
    });
    check("whole tensors to owners", [](RunConfig& run) {
      if (run.stage > 0) run.partition = Partition::kBalanced;
    });
  }
}

// f16 looks at all gradients before it updates.
TEST(Overlap, ChangesNoBitWhereLossesAreScaled) {
  RunConfig config;
  config.model = TestModel::kGpt;
  config.dtype = DType::kF16;
  config.bucket_bytes = 700;
  for (const int ranks : {2, 3}) {
    for (const int stage : kStages) {
      config.ranks = ranks;
      config.stage = stage;
      config.micro_batches = 2 * ranks;
      config.overlap_bytes = 0;
      const RunResult off = TrainOrDie(config);
      for (const int64_t bytes : {4 * config.bucket_bytes, kUnlimited}) {  // the first is `auto`
        SCOPED_TRACE(fmt::format("{} ranks, stage {}, {} bytes", ranks, stage, bytes));
        config.overlap_bytes = bytes;
        const RunResult run = TrainOrDie(config);
        EXPECT_TRUE(Overlaps(run));
        ExpectSameBits(off, run);
        ExpectPlanIsMeasured(run, config.steps);
      }
    }
  }
}

TEST(Overlap, ResumesWithAnotherSchedule) {
  const std::string directory =
      std::filesystem::path(::testing::TempDir()) / "overlap_test.checkpoint";
  for (const int stage : {1, 3}) {
    std::filesystem::remove_all(directory);
    RunConfig config;
    config.model = TestModel::kGpt;
    config.ranks = 3;
    config.micro_batches = 3;
    config.stage = stage;
    config.bucket_bytes = 700;
    config.steps = 4;
    const RunResult whole = TrainOrDie(config);
    config.steps = 2;
    config.save = directory;
    config.overlap_bytes = kUnlimited;
    TrainOrDie(config);
    config.steps = 4;
    config.resume = directory;
    config.save.clear();
    for (const int64_t bytes : {int64_t{0}, kUnlimited}) {
      config.overlap_bytes = bytes;
      const RunResult resumed = TrainOrDie(config);
      EXPECT_EQ(whole.param_sha256, resumed.param_sha256);
      EXPECT_EQ(whole.optimizer_sha256, resumed.optimizer_sha256);
    }
  }
}

class OverlapDelaysTest : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Stages, OverlapDelaysTest, ::testing::Range(0, 4));

// 200 runs over all stages, each with other arrival times of its messages.
TEST_P(OverlapDelaysTest, ChangeNoBit) {
  RunConfig config;
  config.model = TestModel::kGpt;
  config.ranks = 3;
  config.bucket_bytes = 700;
  config.stage = GetParam();
  std::map<int, RunResult> expected;  // by the number of micro-batches
  for (int run = 0; run < kDelayedRuns; ++run) {
    config.micro_batches = run % 2 == 0 ? 3 : 6;
    config.overlap_bytes = 0;
    config.connect_device = nullptr;
    const auto [found, is_new] = expected.try_emplace(config.micro_batches);
    if (is_new) found->second = TrainOrDie(config);
    config.overlap_bytes = run % 3 == 0 ? 20000 : kUnlimited;
    config.connect_device = [&](Communicator& host) -> StatusOr<DeviceRank> {
      DeviceRank rank;
      const int seed = 1000 * (kDelayedRuns * GetParam() + run) + host.rank();
      rank.communicator = std::make_unique<DelayedCommunicator>(&host, static_cast<unsigned>(seed),
                                                                /*most_us=*/200);
      return rank;
    };
    const RunResult delayed = TrainOrDie(config);
    ASSERT_EQ(found->second.losses, delayed.losses) << "run " << run;
    ASSERT_EQ(found->second.param_sha256, delayed.param_sha256) << "run " << run;
    ASSERT_EQ(found->second.optimizer_sha256, delayed.optimizer_sha256) << "run " << run;
  }
}

// Collectives that begin when their rank says that it only waits for them.
class LazyGroup : public GroupOver {
 public:
  LazyGroup(Group* group, int job_rank, TrafficMeter* traffic, const Communicator* communicator,
            std::atomic<bool>* has_begun)
      : GroupOver(group, job_rank, traffic), communicator_(*communicator), has_begun_(*has_begun) {}

 protected:
  Status Around(CollectiveKind, const std::function<Status()>& call) override {
    has_begun_ = true;
    const auto begin = std::chrono::steady_clock::now();
    while (!communicator_.only_waits()) {
      if (std::chrono::steady_clock::now() - begin > std::chrono::minutes(1)) {
        return DeadlineExceeded("the rank does not say that it only waits");
      }
      std::this_thread::yield();
    }
    return call();
  }

 private:
  const Communicator& communicator_;
  std::atomic<bool>& has_begun_;
};

class LazyCommunicator : public CommunicatorOver {
 public:
  explicit LazyCommunicator(Communicator* host) : CommunicatorOver(host) {}
  bool can_have_threads() const override { return true; }
  Status ExchangeWord(std::string_view name, uint64_t mine, uint64_t* all) override {
    if (has_begun_ && only_waits()) {
      return FailedPrecondition("the rank still says that it only waits");
    }
    return CommunicatorOver::ExchangeWord(name, mine, all);
  }

 protected:
  StatusOr<std::unique_ptr<Group>> MakeGroup(const std::vector<int>& ranks) override {
    ZG_ASSIGN_OR_RETURN(Group* const group, other().GroupOf(ranks, /*for_thread=*/true));
    return std::unique_ptr<Group>(
        std::make_unique<LazyGroup>(group, rank(), &other().traffic_meter(), this, &has_begun_));
  }

 private:
  std::atomic<bool> has_begun_ = false;
};

TEST(OverlapWaitsTest, ARankSaysWhenItOnlyWaits) {
  RunConfig config;
  config.model = TestModel::kGpt;
  config.ranks = 2;
  config.stage = 3;
  config.micro_batches = 2;
  config.bucket_bytes = 700;
  config.overlap_bytes = 20000;
  config.connect_device = [](Communicator& host) -> StatusOr<DeviceRank> {
    DeviceRank rank;
    rank.communicator = std::make_unique<LazyCommunicator>(&host);
    return rank;
  };
  const RunResult lazy = TrainOrDie(config);
  config.connect_device = nullptr;
  EXPECT_EQ(lazy.losses, TrainOrDie(config).losses);
}

}  // namespace
}  // namespace zg::testing
