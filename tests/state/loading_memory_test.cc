// Loading takes less host memory than one bucket beside the arena: files are read piece by piece,
// and no tensor is ever whole on a rank that holds a part.
#include <gtest/gtest.h>

#include <filesystem>

#include "framework/comm/in_process.h"
#include "framework/job/process_memory.h"
#include "framework/nn/nn.h"
#include "framework/ops/register_all_ops.h"
#include "tests/testing/sanitizer.h"
#include "zero/zerograph/make_trainer.h"

namespace zg {
namespace {

constexpr int64_t kBucketBytes = int64_t{6} << 20;
constexpr int64_t kWidth = 1600;  // a layer's weight is 10 MB, more than a bucket

struct WideModel {
  struct Net : nn::Module {
    nn::Linear first{this, "first", kWidth, kWidth};
    nn::Linear second{this, "second", kWidth, kWidth};
  } net;
  Graph graph{"wide"};
  std::vector<float> x = std::vector<float>(kWidth, 0.5f);
  std::unique_ptr<Trainer> trainer;

  explicit WideModel(int stage) {
    RegisterAllOps();
    graph.train(optim::AdamW{}, [&](Inputs& in) {
      const Var x = in.f32("x", {1, kWidth});
      return mse_loss(net.second(relu(net.first(x))), in.f32("y", {1, kWidth}));
    });
    graph.config().enable_zero({.stage = stage, .bucket_bytes = kBucketBytes});
    graph.config().micro_batches = 6;  // micro-batches of a checkpoint, on any number of ranks
  }
  // After a step, so that all of the arena is in memory.
  Status Start(Communicator& communicator) {
    ZG_ASSIGN_OR_RETURN(trainer, make_trainer(graph, communicator, {}));
    return trainer->step([&](int64_t) { return trainer->feed({{"x", x}, {"y", x}}); }).status();
  }
};

// The increase of this process's peak memory by `load`; the process holds all ranks. Every rank
// must call it.
StatusOr<int64_t> AddedBytes(Communicator& communicator, const std::function<Status()>& load) {
  ProcessMemory before;
  ZG_RETURN_IF_ERROR(communicator.Barrier("before"));
  if (communicator.rank() == 0) {
    ZG_RETURN_IF_ERROR(ResetPeakResidentBytes());
    ZG_ASSIGN_OR_RETURN(before, ReadProcessMemory());
  }
  ZG_RETURN_IF_ERROR(communicator.Barrier("start"));
  ZG_RETURN_IF_ERROR(load());
  ZG_RETURN_IF_ERROR(communicator.Barrier("loaded"));
  ZG_ASSIGN_OR_RETURN(const ProcessMemory after, ReadProcessMemory());
  return after.peak_resident_bytes - before.resident_bytes;
}

class LoadingMemory : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    if (testing::kHasSanitizer) GTEST_SKIP() << "a sanitizer takes memory of its own";
    std::filesystem::remove_all(directory_);
    const Status saved = RunRanks(1, [&](Communicator& communicator) -> Status {
      WideModel model(/*stage=*/0);
      ZG_RETURN_IF_ERROR(model.Start(communicator));
      return model.trainer->save(directory_);
    });
    ASSERT_TRUE(saved.ok()) << saved.message();
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  // Stage 3 on several ranks.
  void ExpectLessThanABucketPerRank(const std::function<Status(Trainer&)>& load,
                                    const std::function<Status(Trainer&)>& prepare = nullptr) {
    const int ranks = GetParam();
    int64_t added_bytes = 0;
    const Status status = RunRanks(ranks, [&](Communicator& communicator) -> Status {
      WideModel model(ranks == 1 ? 0 : 3);
      ZG_RETURN_IF_ERROR(model.Start(communicator));
      if (prepare) ZG_RETURN_IF_ERROR(prepare(*model.trainer));
      ZG_ASSIGN_OR_RETURN(const int64_t bytes,
                          AddedBytes(communicator, [&] { return load(*model.trainer); }));
      if (communicator.rank() == 0) added_bytes = bytes;
      return Status::Ok();
    });
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_LT(added_bytes, ranks * kBucketBytes);
    RecordProperty("added_bytes", static_cast<int>(added_bytes));
  }

  const std::string directory_ = ::testing::TempDir() + "/loading_memory";
};

INSTANTIATE_TEST_SUITE_P(Ranks, LoadingMemory, ::testing::Values(1, 2, 3));

TEST_P(LoadingMemory, OfInitialParameters) {
  std::string path;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory_)) {
    const std::string name = entry.path().filename();
    if (name.rfind("model-", 0) == 0) path = entry.path();
  }
  ExpectLessThanABucketPerRank(
      [&](Trainer& trainer) { return LoadParameters(trainer.executor(), path); });
}

TEST_P(LoadingMemory, OfACheckpoint) {
  ExpectLessThanABucketPerRank([&](Trainer& trainer) { return trainer.resume(directory_); });
}

TEST_P(LoadingMemory, OfScatteredParameters) {
  NamedValues whole;
  ExpectLessThanABucketPerRank([&](Trainer& trainer) { return trainer.scatter_parameters(whole); },
                               [&](Trainer& trainer) -> Status {
                                 ZG_ASSIGN_OR_RETURN(NamedValues values,
                                                     trainer.consolidate_parameters());
                                 if (!values.empty()) whole = std::move(values);
                                 return Status::Ok();
                               });
}

}  // namespace
}  // namespace zg
