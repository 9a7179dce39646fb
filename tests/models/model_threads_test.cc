// Every model has the same losses, parameters and optimizer state, bit for bit, with 1, 2 and 3 threads
// to a rank, at stages 0 and 3; and holds the memory that was planned.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "framework/comm/in_process.h"
#include "framework/kernels/cpu/sharing.h"
#include "framework/ops/register_all_ops.h"
#include "tests/models/small_models.h"
#include "zero/zerograph/make_trainer.h"

namespace zg {
namespace {

constexpr int64_t kMicroBatches = 2;  // of a step, over all ranks
constexpr int kSteps = 2;

struct Config {
  int ranks = 1;
  int stage = 0;
  DType dtype = DType::kF32;
  int threads = 1;
};

struct Result {
  std::vector<float> losses;
  std::string param_sha256;
  std::string optimizer_sha256;
  int64_t workspace_bytes = 0;
};

Result TrainWith(const std::string& name, const Config& config) {
  RegisterAllOps();
  const testing::ReferenceData data(name);
  Result result;
  const Status status = RunRanks(config.ranks, [&](Communicator& communicator) -> Status {
    const testing::SmallModel model = testing::SmallModels().at(name)();
    const int64_t batch = testing::kReferenceBatch / kMicroBatches;
    Graph graph(name);
    graph.train(optim::AdamW{.lr = 0.01}, [&](Inputs& in) {
      const Var y = model.result(in, batch);
      return model.loss(y, in, batch);
    });
    graph.config().zero.stage = config.stage;
    graph.config().zero.shard_min_elements = 0;
    graph.config().micro_batches = kMicroBatches;
    graph.config().dtype = config.dtype;
    graph.config().max_grad_norm = 1.0;
    TrainerOptions options;
    options.threads = config.threads;
    ZG_ASSIGN_OR_RETURN(const std::unique_ptr<Trainer> trainer,
                        make_trainer(graph, communicator, options));
    ZG_RETURN_IF_ERROR(
        trainer->load_parameters(testing::ReferenceFolder(name) + "/model.safetensors"));
    std::vector<float> losses;
    for (int step = 0; step < kSteps; ++step) {
      ZG_ASSIGN_OR_RETURN(const float loss, trainer->step([&](int64_t micro_batch) {
        return data.Feed(*trainer, "", step, micro_batch, kMicroBatches);
      }));
      losses.push_back(loss);
    }
    ZG_ASSIGN_OR_RETURN(const TensorDigest parameters, trainer->digest_parameters());
    ZG_ASSIGN_OR_RETURN(const TensorDigest state, trainer->digest_optimizer_state());
    if (communicator.rank() != 0) return Status::Ok();
    const Executor& executor = trainer->executor();
    EXPECT_EQ(executor.meter().category_bytes(), executor.plan().category_bytes);
    EXPECT_EQ(executor.meter().peak_bytes(), executor.plan().arena_bytes);
    result.losses = losses;
    result.param_sha256 = parameters.sha256;
    result.optimizer_sha256 = state.sha256;
    result.workspace_bytes =
        executor.plan().category_bytes[static_cast<int>(MemoryCategory::kWorkspace)];
    return Status::Ok();
  });
  EXPECT_TRUE(status.ok()) << status.message();
  return result;
}

class ModelThreads : public ::testing::TestWithParam<std::string> {
 protected:
  ModelThreads() { ShareSmallWork(true); }
  ~ModelThreads() override { ShareSmallWork(false); }
};

TEST_P(ModelThreads, ChangeNoBit) {
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    const Result expected = TrainWith(GetParam(), {1, 0, dtype, 1});
    ASSERT_EQ(expected.losses.size(), kSteps);
    for (const int stage : {0, 3}) {
      for (const int threads : {1, 2, 3}) {
        SCOPED_TRACE(fmt::format("{}, stage {}, {} threads", DTypeName(dtype), stage, threads));
        const Result got = TrainWith(GetParam(), {stage == 0 ? 1 : 2, stage, dtype, threads});
        EXPECT_EQ(got.losses, expected.losses);
        EXPECT_EQ(got.param_sha256, expected.param_sha256);
        EXPECT_EQ(got.optimizer_sha256, expected.optimizer_sha256);
        if (stage > 0) continue;
        EXPECT_GE(got.workspace_bytes, expected.workspace_bytes);  // threads have some of their own
      }
    }
  }
}

std::vector<std::string> Names() {
  std::vector<std::string> names;
  for (const auto& [name, make] : testing::SmallModels()) names.push_back(name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(All, ModelThreads, ::testing::ValuesIn(Names()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace zg
