// Data, initial values and sizes that a run must refuse, with all problems in one message, on
// in-process ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "framework/comm/in_process.h"
#include "framework/io/safetensors_writer.h"
#include "framework/nn/nn.h"
#include "framework/ops/register_all_ops.h"
#include "framework/state/tensor_state.h"
#include "tests/io/test_file.h"
#include "tests/zero/small_trainer.h"
#include "zero/zerograph/make_trainer.h"

namespace zg::zero {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(RefusedRun, ATargetBeyondTheClassesOnOneRank) {
  testing::SmallTrainerConfig config;
  config.ranks = 2;
  config.stage = 2;
  std::vector<Status> statuses(config.ranks);
  const std::vector<float> x(4 * 12, 0.5f);
  testing::OnSmallTrainers(config, [&](Trainer& trainer) {
    Communicator& communicator = trainer.executor().communicator();
    const std::vector<int64_t> y = {0, 1, communicator.rank() == 1 ? 3 : 2, 1};
    const Status status = trainer.step({{"x", x}, {"y", y}}).status();
    statuses[communicator.rank()] = status;
    if (!status.ok()) communicator.Abort(status);
    return status;
  });
  EXPECT_EQ(
      statuses[1].message(),
      "step 1, softmax_cross_entropy_with_grad: softmax_cross_entropy: the target at position 2 "
      "is 3, the logits have classes 0 to 2");
  EXPECT_EQ(statuses[0].code(), StatusCode::kAborted);
}

struct Words : nn::Module {
  nn::Embedding embedding{this, "embedding", 5, 4};
  nn::Linear output{this, "output", 4, 5};
  Var forward(Var x) override { return output(embedding(x)); }
};

TEST(RefusedRun, AnIdBeyondTheVocabulary) {
  RegisterAllOps();
  const Status status = RunRanks(1, [](Communicator& communicator) -> Status {
    Words model;
    Graph graph("words");
    graph.train(optim::Sgd{.lr = 0.1}, [&](Inputs& in) {
      return cross_entropy(model(in.i64("x", {3})), in.i64("y", {3}));
    });
    ZG_ASSIGN_OR_RETURN(const auto trainer, make_trainer(graph, communicator, {}));
    const std::vector<int64_t> y = {0, 1, 2};
    for (const int64_t id : {int64_t{4}, int64_t{5}}) {
      const std::vector<int64_t> x = {0, id, 1};
      ZG_RETURN_IF_ERROR(trainer->step({{"x", x}, {"y", y}}).status());
    }
    return Status::Ok();
  });
  EXPECT_EQ(status.message(),
            "step 2, embedding of embedding: embedding: the id at position 1 is 5, the table has "
            "rows 0 to 4");
}

TEST(RefusedRun, InitialValuesOfAnotherModelAreListedAtOnce) {
  const std::vector<float> zeros(96, 0.0f);
  const auto f32 = SafetensorsDType::kF32;
  const std::string path = TestPath("other.safetensors");
  const Status written = WriteSafetensors(path, {{"hidden.weight", f32, {12, 8}, zeros.data()},
                                                 {"hidden.bias", f32, {8}, zeros.data()},
                                                 {"output.weight", f32, {3, 8}, zeros.data()},
                                                 {"head.bias", f32, {3}, zeros.data()}});
  ASSERT_TRUE(written.ok()) << written.message();
  testing::SmallTrainerConfig config;
  config.ranks = 2;
  config.stage = 3;
  for (const Status& status : testing::OnSmallTrainers(
           config, [&](Trainer& trainer) { return LoadParameters(trainer.executor(), path); })) {
    EXPECT_EQ(status.message(),
              path +
                  ": 3 tensors do not fit the model:\n"
                  "  'hidden.weight': got f32[12,8], expected f32[8,12]\n"
                  "  'output.bias' is missing\n"
                  "  'head.bias' is not a parameter or buffer that the graph uses\n"
                  "  hint: write the file from a model of this size, map names (load_parameters, "
                  "name_in_file), or name what else it has (load_parameters, may_skip)");
  }
}

// A model with PyTorch's batch norm, and a classifier that this model lacks.
TEST(RefusedRun, OfAFileSomeTensorsMayBeSkipped) {
  const std::string path = ::testing::TempDir() + "/more.safetensors";
  const std::vector<float> zeros(96);
  const int64_t count = 7;
  const auto f32 = SafetensorsDType::kF32;
  const Status written =
      WriteSafetensors(path, {{"hidden.weight", f32, {8, 12}, zeros.data()},
                              {"hidden.bias", f32, {8}, zeros.data()},
                              {"output.weight", f32, {3, 8}, zeros.data()},
                              {"output.bias", f32, {3}, zeros.data()},
                              {"head.bias", f32, {3}, zeros.data()},
                              {"norm.num_batches_tracked", SafetensorsDType::kI64, {}, &count}});
  ASSERT_TRUE(written.ok()) << written.message();
  const Status loaded = testing::OnSmallTrainer({}, [&](Trainer& trainer) {
    EXPECT_THAT(trainer.load_parameters(path).message(),
                ::testing::HasSubstr("1 tensors do not fit the model:\n  'head.bias' is not"));
    return trainer.load_parameters(path, "", "head.*");
  });
  EXPECT_TRUE(loaded.ok()) << loaded.message();
}

// A file with other names, which it also gets when it is written.
TEST(RefusedRun, OfAFileTheNamesMayBeOthers) {
  const std::string path = ::testing::TempDir() + "/names.safetensors";
  const NameInFile names = renaming({{"hidden.", "model.fc1."}, {"output.", "model.fc2."}});
  for (const int stage : {0, 3}) {
    testing::SmallTrainerConfig config;
    config.ranks = 2;
    config.stage = stage;
    const std::vector<Status> statuses =
        testing::OnSmallTrainers(config, [&](Trainer& trainer) -> Status {
          ZG_ASSIGN_OR_RETURN(const TensorDigest before, trainer.digest_parameters());
          ZG_RETURN_IF_ERROR(trainer.save_parameters(path, names));
          EXPECT_THAT(
              trainer.load_parameters(path).message(),
              ::testing::AllOf(::testing::HasSubstr("8 tensors do not fit the model:\n"
                                                    "  'hidden.bias' is missing\n"),
                               ::testing::HasSubstr("  'model.fc1.bias' is not a parameter or "
                                                    "buffer that the graph uses\n"),
                               ::testing::HasSubstr("map names (load_parameters, name_in_file)")));
          EXPECT_THAT(
              trainer.load_parameters(path, "", "", renaming({{"hidden", "model.fc1"}})).message(),
              ::testing::HasSubstr("4 tensors do not fit the model:\n  'output.bias' is missing"));
          EXPECT_THAT(
              trainer.save_parameters(path, [](const std::string&) { return "all"; }).message(),
              ::testing::HasSubstr("both 'hidden.bias' and 'hidden.weight' would be 'all'"));
          ZG_RETURN_IF_ERROR(trainer.load_parameters(path, "", "", names));
          ZG_ASSIGN_OR_RETURN(const TensorDigest after, trainer.digest_parameters());
          EXPECT_EQ(after.sha256, before.sha256);
          return Status::Ok();
        });
    for (const Status& status : statuses) EXPECT_TRUE(status.ok()) << status.message();
  }
}

TEST(RefusedRun, MoreMemoryThanThereIsBeforeAnyIsAllocated) {
  RegisterAllOps();
  for (const int stage : {0, 3}) {
    const Status status = RunRanks(2, [&](Communicator& communicator) -> Status {
      struct Huge : nn::Module {
        nn::Linear linear{this, "linear", 4000000, 4000000};
        Var forward(Var x) override { return linear(x); }
      } model;
      Graph graph("huge");
      graph.train(optim::Sgd{.lr = 0.1}, [&](Inputs& in) {
        const Shape shape = {1, 4000000};
        return mse_loss(model(in.f32("x", shape)), in.f32("y", shape));
      });
      graph.config().enable_zero({.stage = stage});
      return make_trainer(graph, communicator, {}).status();
    });
    EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
    EXPECT_THAT(
        status.message(),
        AllOf(StartsWith("2 ranks on this host need "), HasSubstr(" are available"),
              HasSubstr(stage == 0 ? "\n  each rank: parameters 64.0 TB, gradients 64.0 TB, "
                                     "optimizer_state 0 B, "
                                   : "\n  each rank: parameters 32.0 TB, gradients 32.0 TB, "
                                     "optimizer_state 0 B, ")));
  }
}

}  // namespace
}  // namespace zg::zero
