// Changes between steps to what is trained: parameters are frozen and unfrozen, groups join. The
// bits are the same at every stage, on any number of ranks, in f32 and bf16; nothing else is lost;
// and a resumed run continues like the one that was saved.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "framework/nn/nn.h"
#include "framework/state/tensor_state.h"
#include "tests/testing/results_on_ranks.h"
#include "zero/zerograph/make_trainer.h"

namespace zg {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kBatch = 4;
constexpr int kMicroBatches = 6;  // of 1, 2 and 3 ranks
constexpr double kLr = 0.05;

struct Model : nn::Module {
  nn::Embedding table{this, "table", 5, 8};
  nn::Linear hidden{this, "hidden", 8, 8};
  nn::Linear last{this, "last", 8, 3};
};

struct Config {
  int ranks = 1;
  int stage = 0;
  DType dtype = DType::kF32;
  double max_grad_norm = 0;
  optim::Optimizer optimizer = optim::AdamW{.lr = kLr};
};

class ChangingRun {
 public:
  ChangingRun(const Config& config, Communicator& communicator) : graph_("changes") {
    graph_.train(config.optimizer, [&](Inputs& in) {
      const Var h = model_.table(in.i64("ids", {kBatch}));
      return cross_entropy(model_.last(relu(model_.hidden(h))), in.i64("y", {kBatch}));
    });
    graph_.config().zero.stage = config.stage;
    graph_.config().zero.bucket_bytes = 128;
    graph_.config().micro_batches = kMicroBatches;
    graph_.config().dtype = config.dtype;
    graph_.config().max_grad_norm = config.max_grad_norm;
    made_ = make_trainer(graph_, communicator);
  }

  Status status() const { return made_.status(); }
  Trainer& trainer() { return **made_; }
  const std::vector<float>& losses() const { return losses_; }

  Status StepUntil(int64_t step) {
    std::vector<int64_t> ids(kBatch);
    std::vector<int64_t> y(kBatch);
    while (trainer().steps_done() < step) {
      ZG_ASSIGN_OR_RETURN(const float loss, trainer().step([&](int64_t micro_batch) {
        for (int64_t i = 0; i < kBatch; ++i) {
          ids[i] = (trainer().steps_done() + 2 * micro_batch + i) % 5;
          y[i] = ids[i] % 3;
        }
        return trainer().feed({{"ids", ids}, {"y", y}});
      }));
      losses_.push_back(loss);
    }
    return Status::Ok();
  }

  std::vector<std::string> StateNames() {
    std::vector<std::string> names;
    for (const ir::StoredTensor* tensor :
         TensorsByName(trainer().executor().graph(), TensorRole::kOptimizerState)) {
      names.push_back(tensor->name);
    }
    return names;
  }

 private:
  Model model_;
  Graph graph_;
  StatusOr<std::unique_ptr<Trainer>> made_ = InvalidArgument("not made");
  std::vector<float> losses_;
};

struct Result {
  std::vector<float> losses;
  std::string parameters;
  std::string state;
};

Status Finish(ChangingRun& run, Result* result) {
  result->losses = run.losses();
  ZG_ASSIGN_OR_RETURN(const TensorDigest parameters, run.trainer().digest_parameters());
  ZG_ASSIGN_OR_RETURN(const TensorDigest state, run.trainer().digest_optimizer_state());
  result->parameters = parameters.sha256;
  result->state = state.sha256;
  return Status::Ok();
}

optim::ParameterGroup Head() { return {"head", "last", optim::Lion{.lr = 0.01}}; }

// Steps 1 and 2 train everything; 3 and 4 without hidden and table; 5 with hidden.weight again; 6
// with the head in a group of its own. `save` after step 5.
Status TrainWithChanges(const Config& config, Communicator& communicator, const std::string& save,
                        Result* result) {
  ChangingRun run(config, communicator);
  ZG_RETURN_IF_ERROR(run.status());
  ZG_RETURN_IF_ERROR(run.StepUntil(2));
  ZG_RETURN_IF_ERROR(run.trainer().freeze("hidden,table.*"));
  ZG_RETURN_IF_ERROR(run.StepUntil(4));
  ZG_RETURN_IF_ERROR(run.trainer().unfreeze("hidden.weight"));
  ZG_RETURN_IF_ERROR(run.StepUntil(5));
  if (!save.empty()) ZG_RETURN_IF_ERROR(run.trainer().save(save));
  ZG_RETURN_IF_ERROR(run.trainer().add_parameter_group(Head()));
  ZG_RETURN_IF_ERROR(run.StepUntil(6));
  return Finish(run, result);
}

StatusOr<Result> OnRanks(const Config& config,
                         const std::function<Status(Communicator&, Result*)>& body) {
  ZG_ASSIGN_OR_RETURN(const std::vector<Result> results,
                      testing::TryOnRanks<Result>(config.ranks, body));
  return results[0];
}

Result Changed(const Config& config, const std::string& save = "") {
  const auto result = OnRanks(config, [&](Communicator& communicator, Result* of_rank) {
    return TrainWithChanges(config, communicator, save, of_rank);
  });
  EXPECT_TRUE(result.ok()) << result.status().message();
  return result.ok() ? *result : Result();
}

void ExpectSame(const Result& got, const Result& expected) {
  EXPECT_EQ(got.losses, expected.losses);
  EXPECT_EQ(got.parameters, expected.parameters);
  EXPECT_EQ(got.state, expected.state);
}

TEST(TrainingChanges, SameBitsAtEveryStageAndOnAnyNumberOfRanks) {
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    for (const double max_grad_norm : {0.0, 0.05}) {
      const Result one = Changed({1, 0, dtype, max_grad_norm});
      ASSERT_EQ(one.losses.size(), 6u);
      for (const int ranks : {2, 3}) {
        for (int stage = 0; stage <= 3; ++stage) {
          SCOPED_TRACE(fmt::format("{}, {} ranks, stage {}, clipped at {}", DTypeName(dtype), ranks,
                                   stage, max_grad_norm));
          ExpectSame(Changed({ranks, stage, dtype, max_grad_norm}), one);
        }
      }
    }
  }
}

// Row and column states are dropped and added with their parameters.
TEST(TrainingChanges, SameBitsWithRowsAndColumns) {
  const optim::Optimizer adafactor = optim::Adafactor{.lr = kLr};
  const Result one = Changed({1, 0, DType::kF32, 0.0, adafactor});
  for (const int ranks : {2, 3}) {
    for (int stage = 0; stage <= 3; ++stage) {
      SCOPED_TRACE(fmt::format("{} ranks, stage {}", ranks, stage));
      ExpectSame(Changed({ranks, stage, DType::kF32, 0.0, adafactor}), one);
    }
  }
}

TEST(TrainingChanges, OtherStateStaysAndFrozenParametersHaveNone) {
  const Config config = {2, 3};
  const auto done = OnRanks(config, [&](Communicator& communicator, Result*) -> Status {
    ChangingRun run(config, communicator);
    ZG_RETURN_IF_ERROR(run.status());
    ZG_RETURN_IF_ERROR(run.StepUntil(3));
    Trainer& trainer = run.trainer();
    const int64_t bytes_before =
        trainer.program().memory.category_bytes[static_cast<int>(MemoryCategory::kOptimizerState)];
    ZG_ASSIGN_OR_RETURN(const NamedValues parameters, trainer.consolidate_parameters());
    ZG_ASSIGN_OR_RETURN(const OptimizerState state, trainer.consolidate_optimizer_state());
    ZG_RETURN_IF_ERROR(trainer.freeze("hidden.weight,table"));
    const std::vector<std::string> left = {"hidden.bias.exp_avg", "hidden.bias.exp_avg_sq",
                                           "last.bias.exp_avg",   "last.bias.exp_avg_sq",
                                           "last.weight.exp_avg", "last.weight.exp_avg_sq"};
    EXPECT_EQ(run.StateNames(), left);
    EXPECT_LT(
        trainer.program().memory.category_bytes[static_cast<int>(MemoryCategory::kOptimizerState)],
        bytes_before);
    ZG_ASSIGN_OR_RETURN(const NamedValues parameters_now, trainer.consolidate_parameters());
    ZG_ASSIGN_OR_RETURN(const OptimizerState state_now, trainer.consolidate_optimizer_state());
    EXPECT_EQ(state_now.step, 3);
    for (const auto& [name, values] : parameters_now) {
      EXPECT_EQ(values.values, parameters.find(name)->second.values) << name;
    }
    for (const auto& [name, values] : state_now.tensors) {
      EXPECT_EQ(values.values, state.tensors.find(name)->second.values) << name;
    }
    ZG_RETURN_IF_ERROR(run.StepUntil(5));
    ZG_ASSIGN_OR_RETURN(const NamedValues later, trainer.consolidate_parameters());
    if (communicator.rank() != 0) return Status::Ok();
    EXPECT_EQ(later.find("hidden.weight")->second.values,
              parameters.find("hidden.weight")->second.values);
    EXPECT_NE(later.find("last.weight")->second.values,
              parameters.find("last.weight")->second.values);
    return Status::Ok();
  });
  EXPECT_TRUE(done.ok()) << done.status().message();
}

// Adam's first update has the size of the learning rate, because its corrections count from there.
TEST(TrainingChanges, WhoJoinsBeginsWithItsFirstUpdate) {
  const Config config = {1, 0};
  const auto done = OnRanks(config, [&](Communicator& communicator, Result*) -> Status {
    ChangingRun run(config, communicator);
    ZG_RETURN_IF_ERROR(run.status());
    ZG_RETURN_IF_ERROR(run.trainer().freeze("hidden"));
    ZG_RETURN_IF_ERROR(run.StepUntil(40));
    ZG_RETURN_IF_ERROR(run.trainer().unfreeze("hidden"));
    ZG_ASSIGN_OR_RETURN(NamedValues before, run.trainer().consolidate_parameters());
    ZG_RETURN_IF_ERROR(run.StepUntil(41));
    ZG_ASSIGN_OR_RETURN(NamedValues after, run.trainer().consolidate_parameters());
    double largest = 0;
    for (size_t i = 0; i < 64; ++i) {
      const float p = before["hidden.weight"].values[i];
      const double decayed = p * (1 - kLr * 0.01);
      largest = std::max(largest, std::abs(after["hidden.weight"].values[i] - decayed));
    }
    EXPECT_NEAR(largest, kLr, 1e-3 * kLr);
    return Status::Ok();
  });
  EXPECT_TRUE(done.ok()) << done.status().message();
}

TEST(TrainingChanges, AreInCheckpoints) {
  const std::string directory = ::testing::TempDir() + "/changes";
  std::filesystem::remove_all(directory);
  const Result whole = Changed({2, 2}, directory);
  const Config other = {3, 3};
  const auto resumed = OnRanks(other, [&](Communicator& communicator, Result* result) -> Status {
    ChangingRun run(other, communicator);
    ZG_RETURN_IF_ERROR(run.status());
    ZG_RETURN_IF_ERROR(run.trainer().resume(directory));
    ZG_RETURN_IF_ERROR(run.trainer().add_parameter_group(Head()));
    ZG_RETURN_IF_ERROR(run.StepUntil(6));
    return Finish(run, result);
  });
  ASSERT_TRUE(resumed.ok()) << resumed.status().message();
  EXPECT_EQ(resumed->losses, (std::vector<float>{whole.losses[5]}));
  EXPECT_EQ(resumed->parameters, whole.parameters);
  EXPECT_EQ(resumed->state, whole.state);
}

// The group was added before the checkpoint.
TEST(TrainingChanges, GroupsThatWereAddedAreGivenToResume) {
  const std::string directory = ::testing::TempDir() + "/changes_with_group";
  std::filesystem::remove_all(directory);
  const Config first = {2, 1};
  const auto saved = OnRanks(first, [&](Communicator& communicator, Result* result) -> Status {
    ChangingRun run(first, communicator);
    ZG_RETURN_IF_ERROR(run.status());
    ZG_RETURN_IF_ERROR(run.StepUntil(2));
    ZG_RETURN_IF_ERROR(run.trainer().add_parameter_group(Head()));
    ZG_RETURN_IF_ERROR(run.StepUntil(3));
    ZG_RETURN_IF_ERROR(run.trainer().save(directory));
    ZG_RETURN_IF_ERROR(run.StepUntil(4));
    return Finish(run, result);
  });
  ASSERT_TRUE(saved.ok()) << saved.status().message();
  const auto resume = [&](const std::vector<optim::ParameterGroup>& groups) {
    const Config config = {3, 2};
    return OnRanks(config, [&, config](Communicator& communicator, Result* result) -> Status {
      ChangingRun run(config, communicator);
      ZG_RETURN_IF_ERROR(run.status());
      ZG_RETURN_IF_ERROR(run.trainer().resume(directory, groups));
      ZG_RETURN_IF_ERROR(run.StepUntil(4));
      return Finish(run, result);
    });
  };
  const auto resumed = resume({Head()});
  ASSERT_TRUE(resumed.ok()) << resumed.status().message();
  EXPECT_EQ(resumed->parameters, saved->parameters);
  EXPECT_EQ(resumed->state, saved->state);
  EXPECT_THAT(resume({}).status().message(),
              HasSubstr("the run added the parameter group head of 'last' between steps; give it "
                        "to resume()"));
}

std::string ErrorOf(const std::function<Status(Trainer&)>& change, int ranks = 2) {
  const Config config = {ranks, 1};
  const auto done = OnRanks(config, [&](Communicator& communicator, Result*) -> Status {
    ChangingRun run(config, communicator);
    ZG_RETURN_IF_ERROR(run.status());
    ZG_RETURN_IF_ERROR(run.StepUntil(1));
    const Status status = change(run.trainer());
    EXPECT_TRUE(run.StepUntil(2).ok());  // goes on as before
    return status;
  });
  return done.status().message();
}

TEST(TrainingChanges, RejectWhatCannotBe) {
  EXPECT_THAT(ErrorOf([](Trainer& trainer) { return trainer.freeze("hiden.weight"); }),
              HasSubstr("freeze 'hiden.weight': 'hiden.weight' names no parameter of the graph; it "
                        "has table.weight, hidden.weight, hidden.bias, last.weight, ..."));
  EXPECT_THAT(ErrorOf([](Trainer& trainer) { return trainer.freeze("**"); }),
              HasSubstr("depends on no trainable parameter"));
  EXPECT_THAT(ErrorOf([](Trainer& trainer) {
                const bool is_first = trainer.executor().communicator().rank() == 0;
                return trainer.freeze(is_first ? "hidden" : "table");
              }),
              HasSubstr("changes by freeze 'table' on rank 1, but by freeze 'hidden' on rank 0"));
}

}  // namespace
}  // namespace zg
