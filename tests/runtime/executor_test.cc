#include "framework/runtime/executor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "framework/comm/in_process.h"
#include "framework/kernels/cpu/cpu_kernels.h"
#include "framework/nn/nn.h"
#include "framework/ops/register_all_ops.h"
#include "framework/runtime/plan_program.h"
#include "models/gpt/model.h"
#include "tests/testing/allocation_counter.h"
#include "zero/compile.h"
#include "zero/zerograph/make_trainer.h"

namespace zg {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kBatch = 2;

// A small GPT with one of everything, on one rank of a job.
struct SmallGpt {
  models::Gpt model{
      {.layers = 2, .heads = 2, .channels = 16, .context = 8, .vocabulary = 11, .dropout = 0.1}};
  Graph graph;
  std::vector<int64_t> x = std::vector<int64_t>(kBatch * 8, 3);
  std::vector<int64_t> y = std::vector<int64_t>(kBatch * 8, 4);

  explicit SmallGpt(int stage = 0) : graph("gpt") {
    RegisterAllOps();
    const Shape shape = {kBatch, 8};
    graph.train(optim::AdamW{}, [&](Inputs& in) {
      return cross_entropy(model(in.i64("x", shape)), in.i64("y", shape));
    });
    graph.config().enable_zero({.stage = stage, .bucket_bytes = 4096});
  }
};

Status Feed(const SmallGpt& gpt, Executor& executor) {
  const auto set = [&](const char* name, const std::vector<int64_t>& values) {
    return executor.SetInput("", name, DType::kI64, values.data(),
                             static_cast<int64_t>(values.size() * sizeof(int64_t)),
                             /*is_copied=*/true);
  };
  ZG_RETURN_IF_ERROR(set("x", gpt.x));
  return set("y", gpt.y);
}

TEST(Executor, AllocatesNothingWhileStepping) {
  for (int stage : {0, 3}) {
    TrainerOptions options;
    options.profile = stage == 3;
    options.threads = stage == 3 ? 2 : 1;
    std::vector<int64_t> allocations(2);  // by rank
    const Status status = RunRanks(2, [&](Communicator& communicator) -> Status {
      SmallGpt gpt(stage);
      ZG_ASSIGN_OR_RETURN(std::unique_ptr<Trainer> trainer,
                          make_trainer(gpt.graph, communicator, options));
      Executor& executor = trainer->executor();
      const Executor::Feed feed = [&](int64_t) { return Feed(gpt, trainer->executor()); };
      ZG_RETURN_IF_ERROR(executor.RunStep(1, 1.0, feed));  // threads and libraries warm up
      const zg::testing::AllocationCounter counter;
      ZG_RETURN_IF_ERROR(executor.RunStep(2, 1.0, feed));
      ZG_RETURN_IF_ERROR(executor.RunStep(3, 1.0, feed));
      allocations[communicator.rank()] = counter.count();
      return Status::Ok();
    });
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(allocations, std::vector<int64_t>(2)) << "stage " << stage;
  }
}

TEST(Executor, AllocatesNothingWhileAThreadSaves) {
  const std::string directory = ::testing::TempDir() + "/executor_test_saves";
  std::vector<int64_t> allocations(2);  // by rank
  const Status status = RunRanks(2, [&](Communicator& communicator) -> Status {
    SmallGpt gpt(/*stage=*/2);
    ZG_ASSIGN_OR_RETURN(std::unique_ptr<Trainer> trainer,
                        make_trainer(gpt.graph, communicator, {}));
    const Executor::Feed feed = [&](int64_t) { return Feed(gpt, trainer->executor()); };
    ZG_RETURN_IF_ERROR(trainer->executor().RunStep(1, 1.0, feed));  // warms up
    ZG_RETURN_IF_ERROR(trainer->start_saving(directory));
    bool is_saved = false;
    for (int step = 2; !is_saved; ++step) {
      const zg::testing::AllocationCounter counter;
      ZG_RETURN_IF_ERROR(trainer->executor().RunStep(step, 1.0, feed));
      allocations[communicator.rank()] += counter.count();
      ZG_ASSIGN_OR_RETURN(is_saved, trainer->continue_saving());
    }
    return Status::Ok();
  });
  std::filesystem::remove_all(directory);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(allocations, std::vector<int64_t>(2));
}

// The parameters of two ranks after three steps.
std::string Train(const TrainerOptions& options) {
  std::string sha256;
  const Status status = RunRanks(2, [&](Communicator& communicator) -> Status {
    SmallGpt gpt(/*stage=*/2);
    ZG_ASSIGN_OR_RETURN(std::unique_ptr<Trainer> trainer,
                        make_trainer(gpt.graph, communicator, options));
    for (int step = 0; step < 3; ++step) {
      ZG_RETURN_IF_ERROR(trainer->step({{"x", gpt.x}, {"y", gpt.y}}).status());
    }
    const std::optional<Profile> profile = trainer->executor().profile();
    EXPECT_EQ(profile.has_value(), options.profile);
    ZG_ASSIGN_OR_RETURN(const TensorDigest digest, trainer->digest_parameters());
    if (communicator.rank() == 0) sha256 = digest.sha256;
    return Status::Ok();
  });
  EXPECT_TRUE(status.ok()) << status.message();
  return sha256;
}

TEST(Executor, WatchingNodesChangesNoBit) {
  const std::string expected = Train({});
  TrainerOptions options;
  options.profile = true;
  EXPECT_EQ(Train(options), expected);
  options.detect_anomaly = true;
  EXPECT_EQ(Train(options), expected);
}

TEST(Executor, BadTokenNamesStepOpAndModule) {
  SmallGpt gpt;
  gpt.x[5] = 11;
  InProcessGroup group(1);
  StatusOr<std::unique_ptr<Trainer>> trainer = make_trainer(gpt.graph, group.communicator(0), {});
  ASSERT_TRUE(trainer.ok()) << trainer.status().message();
  const Status status = (*trainer)->step({{"x", gpt.x}, {"y", gpt.y}}).status();
  EXPECT_THAT(status.message(), HasSubstr("step 1, embedding of token_embedding"));
  EXPECT_THAT(status.message(), HasSubstr("11"));
}

TEST(Executor, InputsOfAnotherNameOrSizeAreErrors) {
  SmallGpt gpt;
  InProcessGroup group(1);
  StatusOr<std::unique_ptr<Trainer>> trainer = make_trainer(gpt.graph, group.communicator(0), {});
  ASSERT_TRUE(trainer.ok()) << trainer.status().message();
  EXPECT_EQ((*trainer)->step({{"z", gpt.x}}).status().message(),
            "graph gpt: it has no input \"z\"; it has x, y");
  gpt.x.pop_back();
  EXPECT_EQ((*trainer)->step({{"x", gpt.x}}).status().message(),
            "input \"x\": got 15 elements, expected 16, those of i64[2,8] on this rank");
  EXPECT_EQ((*trainer)->eval("predict", {}).message(),
            "graph gpt: it has no eval program \"predict\"; it has none");
}

TEST(Executor, AJobOfAnotherSizeIsAnError) {
  SmallGpt gpt;
  InProcessGroup group(1);
  StatusOr<Program> program =
      zero::Compile(gpt.graph, Mesh::DataParallel(2), gpt.graph.config(), TargetOf(CpuKernels()));
  ASSERT_TRUE(program.ok()) << program.status().message();
  EXPECT_EQ(Trainer::create(*std::move(program), group.communicator(0), {}).status().message(),
            "graph gpt: it is compiled for 2 ranks, the job has 1");
}

TEST(Executor, RanksWithDifferentProgramsAreToldTheFirstDifferingLine) {
  std::vector<std::string> messages(2);
  const Status status = RunRanks(2, [&](Communicator& communicator) {
    SmallGpt gpt(/*stage=*/communicator.rank() + 1);
    const Status compiled = make_trainer(gpt.graph, communicator, {}).status();
    messages[communicator.rank()] = compiled.message();
    return Status::Ok();
  });
  ASSERT_TRUE(status.ok()) << status.message();
  for (const std::string& message : messages) {
    EXPECT_THAT(message, HasSubstr("ranks 0 and 1 compiled different programs"));
    EXPECT_THAT(message,
                HasSubstr("hint: start all ranks from the same binary with the same flags"));
  }
}

}  // namespace
}  // namespace zg
