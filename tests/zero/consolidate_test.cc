// Parameters and optimizer state: consolidated to one rank, each rank's own, and loading either.

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "framework/comm/in_process.h"
#include "framework/nn/nn.h"
#include "framework/ops/register_all_ops.h"
#include "models/classifier/model.h"
#include "zero/zerograph/make_trainer.h"

namespace zg::zero {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr int64_t kMicroBatches = 12;  // the same for 1 to 4 ranks

struct Setting {
  int stage = 0;
  int ranks = 1;
  DType dtype = DType::kF32;
  models::ClassifierConfig model = {12, 7, 3};
};

std::vector<Setting> AllSettings(DType dtype) {
  std::vector<Setting> settings;
  for (int stage : {0, 1, 2, 3}) {
    for (int ranks : {1, 2, 3, 4}) settings.push_back({stage, ranks, dtype});
  }
  return settings;
}

// Runs `body` on every rank, with a trainer whose optimizer counts steps: Adam.
void OnTrainers(const Setting& setting, const std::function<Status(Trainer&)>& body) {
  RegisterAllOps();
  const Status status = RunRanks(setting.ranks, [&](Communicator& communicator) -> Status {
    models::Classifier model(setting.model);
    Graph graph("small");
    graph.train(optim::Adam{.lr = 0.1}, [&](Inputs& in) {
      return cross_entropy(model(in.f32("x", {4, setting.model.inputs})), in.i64("y", {4}));
    });
    graph.config().enable_zero({.stage = setting.stage, .bucket_bytes = 300});
    graph.config().micro_batches = kMicroBatches;
    graph.config().dtype = setting.dtype;
    ZG_ASSIGN_OR_RETURN(std::unique_ptr<Trainer> trainer,
                        make_trainer(graph, communicator, {.seed = 1}));
    return body(*trainer);
  });
  EXPECT_TRUE(status.ok()) << status.message();
}

// Losses of the next steps; data depends only on the step.
StatusOr<std::vector<float>> TrainSteps(Trainer& trainer, int steps) {
  std::vector<float> losses;
  std::vector<float> x(4 * 12);
  const std::vector<int64_t> y = {0, 1, 2, 1};
  for (int i = 0; i < steps; ++i) {
    const int64_t step = trainer.steps_done() + 1;
    ZG_ASSIGN_OR_RETURN(const float loss, trainer.step([&](int64_t micro_batch) {
      for (size_t j = 0; j < x.size(); ++j) {
        x[j] = static_cast<float>((j + 3 * micro_batch + 5 * step) % 7) - 3.0f;
      }
      return trainer.feed({{"x", x}, {"y", y}});
    }));
    losses.push_back(loss);
  }
  return losses;
}

struct Consolidated {
  NamedValues parameters;
  OptimizerState optimizer;
};

bool operator==(const Consolidated& a, const Consolidated& b) {
  const auto same = [](const NamedValues& left, const NamedValues& right) {
    return std::equal(left.begin(), left.end(), right.begin(), right.end(),
                      [](const auto& x, const auto& y) {
                        return x.first == y.first && x.second.shape == y.second.shape &&
                               x.second.elements.begin == y.second.elements.begin &&
                               x.second.values == y.second.values;
                      });
  };
  return same(a.parameters, b.parameters) && a.optimizer.step == b.optimizer.step &&
         same(a.optimizer.tensors, b.optimizer.tensors);
}

class ConsolidateTest : public ::testing::TestWithParam<DType> {};

INSTANTIATE_TEST_SUITE_P(DTypes, ConsolidateTest,
                         ::testing::Values(DType::kF32, DType::kBF16, DType::kF16),
                         [](const auto& info) { return std::string(DTypeName(info.param)); });

TEST_P(ConsolidateTest, AnyStageToAnyStage) {
  Consolidated first;
  std::vector<float> losses;  // of the two steps after it
  for (const Setting& setting : AllSettings(GetParam())) {
    SCOPED_TRACE(fmt::format("stage {}, {} ranks", setting.stage, setting.ranks));
    const int to = setting.ranks - 1;
    Consolidated mine;
    OnTrainers(setting, [&](Trainer& trainer) -> Status {
      ZG_RETURN_IF_ERROR(TrainSteps(trainer, 2).status());
      ZG_ASSIGN_OR_RETURN(NamedValues parameters, trainer.consolidate_parameters(to));
      ZG_ASSIGN_OR_RETURN(OptimizerState optimizer, trainer.consolidate_optimizer_state(to));
      ZG_ASSIGN_OR_RETURN(const std::vector<float> next, TrainSteps(trainer, 2));
      if (trainer.executor().communicator().rank() == to) {
        mine = {std::move(parameters), std::move(optimizer)};
        if (losses.empty()) losses = next;
        EXPECT_EQ(next, losses);
      } else {
        EXPECT_TRUE(parameters.empty());
        EXPECT_TRUE(optimizer.tensors.empty());
        EXPECT_EQ(optimizer.step, 2);
      }
      return Status::Ok();
    });
    if (first.parameters.empty()) first = mine;
    EXPECT_TRUE(mine == first);
  }
  ASSERT_EQ(first.parameters.size(), 4u);
  EXPECT_EQ(first.optimizer.tensors.size(), GetParam() == DType::kF16 ? 9u : 8u);
  EXPECT_EQ(first.parameters.at("hidden.weight").shape, Shape({7, 12}));
  EXPECT_EQ(first.parameters.at("hidden.weight").values.size(), 84u);

  for (const Setting& setting : AllSettings(GetParam())) {
    SCOPED_TRACE(fmt::format("into stage {}, {} ranks", setting.stage, setting.ranks));
    const int from = setting.ranks / 2;
    OnTrainers(setting, [&](Trainer& trainer) -> Status {
      const bool gives = trainer.executor().communicator().rank() == from;
      ZG_RETURN_IF_ERROR(
          trainer.scatter_parameters(gives ? first.parameters : NamedValues(), from));
      ZG_RETURN_IF_ERROR(
          trainer.scatter_optimizer_state(gives ? first.optimizer : OptimizerState(), from));
      EXPECT_EQ(trainer.steps_done(), 2);
      ZG_ASSIGN_OR_RETURN(const std::vector<float> next, TrainSteps(trainer, 2));
      EXPECT_EQ(next, losses);
      return Status::Ok();
    });
  }
}

// Values are sent between ranks a million at a time.
TEST(Consolidate, TensorsOfSeveralChunks) {
  Setting setting;
  setting.model = {1200, 2000, 3};
  NamedValues whole;
  OnTrainers(setting, [&](Trainer& trainer) -> Status {
    ZG_ASSIGN_OR_RETURN(whole, trainer.consolidate_parameters());
    return Status::Ok();
  });
  ASSERT_EQ(whole.at("hidden.weight").values.size(), 2400000u);
  setting.stage = 3;
  setting.ranks = 3;
  OnTrainers(setting, [&](Trainer& trainer) -> Status {
    const bool gives = trainer.executor().communicator().rank() == 1;
    ZG_ASSIGN_OR_RETURN(const NamedValues same, trainer.consolidate_parameters(1));
    NamedValues negated = same;
    for (auto& [name, tensor] : negated) {
      for (float& value : tensor.values) value = -value;
    }
    ZG_RETURN_IF_ERROR(trainer.scatter_parameters(negated, 1));
    ZG_ASSIGN_OR_RETURN(const NamedValues after, trainer.consolidate_parameters(1));
    EXPECT_EQ(same.empty(), !gives);
    for (const auto& [name, tensor] : same) {
      EXPECT_TRUE(tensor.values == whole.at(name).values) << name;
      EXPECT_TRUE(after.at(name).values == negated.at(name).values) << name;
    }
    return Status::Ok();
  });
}

// The others keep their values, also where the ranks that only receive know of no tensor.
TEST(Consolidate, SetsOneParameter) {
  for (const Setting& setting : AllSettings(DType::kF32)) {
    SCOPED_TRACE(fmt::format("stage {}, {} ranks", setting.stage, setting.ranks));
    OnTrainers(setting, [&](Trainer& trainer) -> Status {
      ZG_RETURN_IF_ERROR(TrainSteps(trainer, 1).status());
      const int from = setting.ranks - 1;
      const bool gives = trainer.executor().communicator().rank() == from;
      ZG_ASSIGN_OR_RETURN(NamedValues expected, trainer.consolidate_parameters(from));
      NamedValues bias;
      if (gives) {
        expected.at("output.bias") = WholeTensor(Shape({3}), {1.0f, -2.0f, 3.0f});
        bias["output.bias"] = expected.at("output.bias");
      }
      ZG_RETURN_IF_ERROR(trainer.scatter_parameters(bias, from, "**"));
      ZG_ASSIGN_OR_RETURN(const NamedValues after, trainer.consolidate_parameters(from));
      for (const auto& [name, tensor] : expected) {
        EXPECT_EQ(after.at(name).values, tensor.values) << name;
      }
      const Status refused = trainer.scatter_parameters(bias, from, "hidden");
      EXPECT_THAT(refused.message(), HasSubstr("'output.weight' is missing"));
      EXPECT_THAT(refused.message(), Not(HasSubstr("'hidden.weight' is missing")));
      EXPECT_THAT(trainer.scatter_parameters(bias, from, "a..b").message(), HasSubstr("a..b"));
      return Status::Ok();
    });
  }
}

// A rank's part of the state fits the same rank again, and a whole state fits every rank.
TEST(local_optimizer_state, LoadsWhereItCameFromAndWhole) {
  for (const Setting& setting : AllSettings(DType::kF32)) {
    SCOPED_TRACE(fmt::format("stage {}, {} ranks", setting.stage, setting.ranks));
    for (const bool is_whole : {false, true}) {
      OnTrainers(setting, [&](Trainer& trainer) -> Status {
        ZG_RETURN_IF_ERROR(TrainSteps(trainer, 1).status());
        ZG_ASSIGN_OR_RETURN(const NamedValues parameters, trainer.consolidate_parameters());
        ZG_ASSIGN_OR_RETURN(OptimizerState state, trainer.local_optimizer_state());
        int64_t held = 0;
        for (const auto& [name, tensor] : state.tensors) held += tensor.values.size();
        const int64_t all = 2 * (7 * 12 + 7 + 3 * 7 + 3);
        EXPECT_TRUE(setting.stage == 0 || setting.ranks == 1 ? held == all : held < all) << held;
        for (int rank = 0; is_whole && rank < setting.ranks; ++rank) {
          ZG_ASSIGN_OR_RETURN(OptimizerState whole, trainer.consolidate_optimizer_state(rank));
          if (rank == trainer.executor().communicator().rank()) state = std::move(whole);
        }
        ZG_ASSIGN_OR_RETURN(const std::vector<float> expected, TrainSteps(trainer, 2));
        ZG_RETURN_IF_ERROR(trainer.scatter_parameters(parameters));
        ZG_RETURN_IF_ERROR(trainer.load_optimizer_state(state));
        EXPECT_EQ(trainer.steps_done(), 1);
        ZG_ASSIGN_OR_RETURN(const std::vector<float> again, TrainSteps(trainer, 2));
        EXPECT_EQ(again, expected);
        return Status::Ok();
      });
    }
  }
}

// Every rank gets an error, and nothing has changed.
TEST(ConsolidateErrors, NameEveryTensor) {
  OnTrainers({3, 2}, [&](Trainer& trainer) -> Status {
    const int rank = trainer.executor().communicator().rank();
    ZG_RETURN_IF_ERROR(TrainSteps(trainer, 1).status());
    EXPECT_EQ(trainer.consolidate_parameters(2).status().message(),
              "consolidate: got rank 2, expected one of 0 to 1");
    EXPECT_EQ(trainer.scatter_parameters({}, -1).message(),
              "parameters: scatter: got rank -1, expected one of 0 to 1");

    ZG_ASSIGN_OR_RETURN(NamedValues whole, trainer.consolidate_parameters());
    ZG_ASSIGN_OR_RETURN(const TensorDigest before, trainer.digest_parameters());
    if (rank == 0) {
      whole["stranger"] = WholeTensor(Shape({1}), {1.0f});
      whole.erase("hidden.bias");
      whole["hidden.weight"].shape = Shape({12, 7});
      whole["output.weight"].values.pop_back();
    }
    const std::string message = trainer.scatter_parameters(whole).message();
    EXPECT_THAT(message, HasSubstr("parameters: "));
    EXPECT_THAT(message, HasSubstr("'hidden.bias' is missing"));
    EXPECT_THAT(message, HasSubstr("'hidden.weight': got shape [12,7], expected [7,12]"));
    EXPECT_THAT(message, HasSubstr("'output.weight': got 20 values for 21 elements"));
    EXPECT_THAT(message, HasSubstr("'stranger' is not known"));
    ZG_ASSIGN_OR_RETURN(const TensorDigest after, trainer.digest_parameters());
    EXPECT_EQ(after.sha256, before.sha256);

    // Another rank's part.
    ZG_ASSIGN_OR_RETURN(OptimizerState mine, trainer.local_optimizer_state());
    ZG_ASSIGN_OR_RETURN(const TensorDigest state_before, trainer.digest_optimizer_state());
    OptimizerState none = mine;
    for (auto& [name, tensor] : none.tensors) {
      if (rank == 1) tensor.values.clear();
    }
    EXPECT_THAT(trainer.load_optimizer_state(none).message(),
                HasSubstr("give this rank's own tensors, or whole ones"));
    ZG_ASSIGN_OR_RETURN(const TensorDigest state_after, trainer.digest_optimizer_state());
    EXPECT_EQ(state_after.sha256, state_before.sha256);
    mine.step += rank;
    EXPECT_EQ(trainer.load_optimizer_state(mine).message(),
              "optimizer state: rank 1 gives that of step 2, rank 0 that of step 1; give all ranks "
              "one step's");
    return Status::Ok();
  });
}

}  // namespace
}  // namespace zg::zero
