// A frozen parameter has no gradient, no state and no update, at any stage, on any number of ranks,
// and checkpoints hold it.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "framework/ir/graph.h"
#include "framework/nn/nn.h"
#include "framework/ops/register_all_ops.h"
#include "framework/plan/replicated.h"
#include "framework/state/tensor_state.h"
#include "tests/testing/results_on_ranks.h"
#include "zero/zerograph/make_trainer.h"

namespace zg {
namespace {

constexpr int64_t kBatch = 4;
constexpr int kMicroBatches = 6;  // of 1, 2 and 3 ranks

struct Frozen {
  bool embedding = false;
  bool weight = false;
};

struct Model : nn::Module {
  explicit Model(const Frozen& frozen) {
    if (frozen.embedding) table.weight.freeze();
    if (frozen.weight) hidden.weight.freeze();
  }
  nn::Embedding table{this, "table", 5, 8};
  nn::Linear hidden{this, "hidden", 8, 8};
  nn::Linear last{this, "last", 8, 3};
};

struct Config {
  int ranks = 1;
  int stage = 0;
  DType dtype = DType::kF32;
  Frozen frozen = {true, true};
  std::string resume = {};
  std::string save = {};
};

struct Result {
  std::vector<float> losses;
  std::string parameters;
  std::string state;
  std::vector<std::string> parameter_names;
  std::vector<std::string> state_names;
  std::vector<float> table;  // elements of a frozen parameter, before and after
  std::vector<float> table_before;
  std::vector<plan::Replicated> replicated;
};

std::vector<std::string> NamesOf(const ir::Graph& graph, TensorRole role) {
  std::vector<std::string> names;
  for (const ir::StoredTensor* tensor : TensorsByName(graph, role)) names.push_back(tensor->name);
  return names;
}

// This rank's part of the table.
std::vector<float> TableOf(Trainer& trainer) {
  const ir::StoredTensor* tensor = trainer.executor().graph().FindTensor("table.weight");
  const LocalPart part = trainer.executor().LocalPartOf(*tensor).value();
  const auto* const values = reinterpret_cast<const float*>(part.data);
  return std::vector<float>(values, values + part.count);
}

Status TrainOnRank(const Config& config, Communicator& communicator, Result* result) {
  Model model(config.frozen);
  Graph graph("frozen");
  graph.train(optim::AdamW{.lr = 0.1}, [&](Inputs& in) {
    const Var h = model.table(in.i64("ids", {kBatch}));
    return cross_entropy(model.last(relu(model.hidden(h))), in.i64("y", {kBatch}));
  });
  graph.config().zero.stage = config.stage;
  graph.config().zero.bucket_bytes = 128;
  graph.config().micro_batches = kMicroBatches;
  graph.config().dtype = config.dtype;
  ZG_ASSIGN_OR_RETURN(const std::unique_ptr<Trainer> trainer, make_trainer(graph, communicator));
  if (!config.resume.empty()) ZG_RETURN_IF_ERROR(trainer->resume(config.resume));
  if (config.frozen.embedding) result->table_before = TableOf(*trainer);
  std::vector<int64_t> ids(kBatch);
  std::vector<int64_t> y(kBatch);
  while (trainer->steps_done() < 3) {
    ZG_ASSIGN_OR_RETURN(const float loss, trainer->step([&](int64_t micro_batch) {
      for (int64_t i = 0; i < kBatch; ++i) {
        ids[i] = (trainer->steps_done() + 2 * micro_batch + i) % 5;
        y[i] = ids[i] % 3;
      }
      return trainer->feed({{"ids", ids}, {"y", y}});
    }));
    result->losses.push_back(loss);
    if (!config.save.empty() && trainer->steps_done() == 2) {
      ZG_RETURN_IF_ERROR(trainer->save(config.save));
    }
  }
  if (config.frozen.embedding) result->table = TableOf(*trainer);
  ZG_ASSIGN_OR_RETURN(const TensorDigest parameters, trainer->digest_parameters());
  ZG_ASSIGN_OR_RETURN(const TensorDigest state, trainer->digest_optimizer_state());
  result->parameters = parameters.sha256;
  result->state = state.sha256;
  EXPECT_EQ(trainer->executor().meter().category_bytes(), trainer->program().memory.category_bytes);
  const ir::Graph& compiled = trainer->executor().graph();
  result->parameter_names = NamesOf(compiled, TensorRole::kParameter);
  result->state_names = NamesOf(compiled, TensorRole::kOptimizerState);
  result->replicated = plan::ListReplicated(compiled, trainer->program().options.zero);
  return Status::Ok();
}

// The result of rank 0.
StatusOr<Result> Train(const Config& config) {
  const auto train = [&](Communicator& communicator, Result* result) {
    return TrainOnRank(config, communicator, result);
  };
  ZG_ASSIGN_OR_RETURN(const std::vector<Result> results,
                      testing::TryOnRanks<Result>(config.ranks, train));
  return results[0];
}

Result MustTrain(const Config& config) {
  StatusOr<Result> result = Train(config);
  EXPECT_TRUE(result.ok()) << result.status().message();
  return result.ok() ? *std::move(result) : Result();
}

TEST(FrozenParameters, StayAsTheyAreAndHaveNoState) {
  const Result result = MustTrain({});
  EXPECT_EQ(result.table, result.table_before);
  EXPECT_LT(result.losses[2], result.losses[0]);
  EXPECT_EQ(result.parameter_names,
            (std::vector<std::string>{"hidden.bias", "hidden.weight", "last.bias", "last.weight",
                                      "table.weight"}));
  EXPECT_EQ(result.state_names,
            (std::vector<std::string>{"hidden.bias.exp_avg", "hidden.bias.exp_avg_sq",
                                      "last.bias.exp_avg", "last.bias.exp_avg_sq",
                                      "last.weight.exp_avg", "last.weight.exp_avg_sq"}));
}

TEST(FrozenParameters, ChangeWhatIsTrained) {
  EXPECT_NE(MustTrain({}).parameters, MustTrain({1, 0, DType::kF32, {false, true}}).parameters);
  EXPECT_NE(MustTrain({}).parameters, MustTrain({1, 0, DType::kF32, {false, false}}).parameters);
}

TEST(FrozenParameters, SameBitsAtEveryStageAndOnAnyNumberOfRanks) {
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    const Result one = MustTrain({1, 0, dtype});
    for (const int ranks : {2, 3}) {
      for (int stage = 0; stage <= 3; ++stage) {
        const Result result = MustTrain({ranks, stage, dtype});
        SCOPED_TRACE(fmt::format("{} stage {}, {} ranks", DTypeName(dtype), stage, ranks));
        EXPECT_EQ(result.losses, one.losses);
        EXPECT_EQ(result.parameters, one.parameters);
        EXPECT_EQ(result.state, one.state);
        EXPECT_EQ(result.table, result.table_before);
        if (stage < 3) {
          EXPECT_EQ(result.table, one.table);
        } else {
          EXPECT_LT(result.table.size(), one.table.size());
        }
      }
    }
  }
}

TEST(FrozenParameters, AreListedAsWholeBelowStage3Alone) {
  EXPECT_TRUE(MustTrain({2, 3}).replicated.empty());
  const Result result = MustTrain({2, 2});
  ASSERT_EQ(result.replicated.size(), 1u);
  EXPECT_EQ(result.replicated[0].category, MemoryCategory::kParameters);
  EXPECT_EQ(result.replicated[0].reason, "stage 2 keeps them whole; stage 3 shards them");
  EXPECT_THAT(result.replicated[0].tensors,
              ::testing::IsSupersetOf({"table.weight", "hidden.weight"}));
}

TEST(FrozenParameters, AreInCheckpoints) {
  const std::string directory = ::testing::TempDir() + "/frozen";
  std::filesystem::remove_all(directory);
  const Result whole = MustTrain({2, 2, DType::kBF16, {true, true}, "", directory});
  const Result resumed = MustTrain({3, 3, DType::kBF16, {true, true}, directory});
  EXPECT_EQ(resumed.losses, (std::vector<float>{whole.losses[2]}));
  EXPECT_EQ(resumed.parameters, whole.parameters);
  EXPECT_EQ(resumed.state, whole.state);

  const StatusOr<Result> thawed = Train({1, 0, DType::kBF16, {true, false}, directory});
  ASSERT_FALSE(thawed.ok());
  EXPECT_NE(thawed.status().message().find("frozen"), std::string::npos)
      << thawed.status().message();
}

// A program that only evaluates has no parameter that changes.
TEST(FrozenParameters, AreAllThoseOfAProgramWithoutTraining) {
  struct Evaluated {
    std::vector<float> logits;
    int64_t parameter_bytes = 0;
  };
  const auto evaluate = [](int ranks, int stage, DType dtype) {
    RegisterAllOps();
    std::vector<Evaluated> results(ranks);
    const Status status = RunRanks(ranks, [&](Communicator& communicator) -> Status {
      Model model({false, false});
      Graph graph("evaluated");
      graph.eval("predict", [&](Inputs& in) {
        return model.last(relu(model.hidden(model.table(in.i64("ids", {kBatch}, Sbp::B())))));
      });
      graph.config().zero.stage = stage;
      graph.config().zero.bucket_bytes = 4096;
      graph.config().dtype = dtype;
      ZG_ASSIGN_OR_RETURN(const std::unique_ptr<Trainer> trainer,
                          make_trainer(graph, communicator));
      const std::vector<int64_t> ids = {0, 3, 1, 4};
      ZG_RETURN_IF_ERROR(trainer->eval("predict", {{"ids", ids}}));
      Evaluated& result = results[communicator.rank()];
      ZG_ASSIGN_OR_RETURN(result.logits, trainer->result("predict"));
      const CategoryBytes& planned = trainer->program().memory.category_bytes;
      result.parameter_bytes = planned[static_cast<size_t>(MemoryCategory::kParameters)];
      EXPECT_EQ(trainer->executor().meter().category_bytes(), planned);
      return Status::Ok();
    });
    EXPECT_TRUE(status.ok()) << status.message();
    return results[0];
  };
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    const Evaluated one = evaluate(1, 0, dtype);
    const Evaluated two = evaluate(2, 3, dtype);
    EXPECT_EQ(two.logits, one.logits);
    EXPECT_EQ(evaluate(2, 2, dtype).logits, one.logits);
    // Tensors in a bucket begin at multiples of 64 bytes of the dtype that is read: for so small a
    // model in 16 bits most is padding.
    if (dtype == DType::kF32) {
      EXPECT_LT(two.parameter_bytes, one.parameter_bytes);
    }
  }
}

TEST(FrozenParameters, AModelOfNothingElseDoesNotTrain) {
  RegisterAllOps();
  nn::Module root;
  nn::Linear only(&root, "only", 4, 2, {.has_bias = false});
  only.weight.freeze();
  Graph graph("all_frozen");
  graph.train(optim::Sgd{.lr = 0.1}, [&](Inputs& in) {
    return mse_loss(only(in.f32("x", {3, 4})), in.f32("y", {3, 2}));
  });
  InProcessGroup group(1);
  const Status status = make_trainer(graph, group.communicator(0)).status();
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.message().find("depends on no trainable parameter"), std::string::npos)
      << status.message();
}

}  // namespace
}  // namespace zg
