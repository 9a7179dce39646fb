// Adafactor keeps one number for each row and each column of a matrix, as the plan says; invalid
// uses are errors; numbers that are not finite are detected.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <map>

#include "framework/comm/in_process.h"
#include "framework/nn/nn.h"
#include "framework/ops/register_all_ops.h"
#include "framework/passes/plan_memory.h"
#include "framework/plan/replicated.h"
#include "zero/zerograph/make_trainer.h"

namespace zg {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kBatch = 2;
constexpr int64_t kInputs = 40, kHidden = 24, kOutputs = 10;

struct Model : nn::Module {
  Var forward(Var x) override { return last(relu(hidden(x))); }
  nn::Linear hidden{this, "hidden", kInputs, kHidden};
  nn::Linear last{this, "last", kHidden, kOutputs};
};

struct Config {
  optim::Optimizer optimizer = optim::Adafactor{.lr = 0.05};
  int ranks = 1;
  int stage = 0;
  OnNonFinite on_non_finite = OnNonFinite::kStop;
  std::vector<optim::ParameterGroup> groups = {};
};

// Trains with `body` on every rank; returns the first error.
Status OnTrainers(const Config& config, const std::function<Status(Trainer&)>& body) {
  RegisterAllOps();
  return RunRanks(config.ranks, [&](Communicator& communicator) -> Status {
    Model model;
    Graph graph("adafactor");
    graph.train(config.optimizer, [&](Inputs& in) {
      return mse_loss(model(in.f32("x", {kBatch, kInputs})), in.f32("y", {kBatch, kOutputs}));
    });
    for (const optim::ParameterGroup& group : config.groups) graph.add_parameter_group(group);
    graph.config().zero.stage = config.stage;
    graph.config().micro_batches = config.ranks;
    graph.config().on_non_finite = config.on_non_finite;
    ZG_ASSIGN_OR_RETURN(const auto trainer, make_trainer(graph, communicator));
    return body(*trainer);
  });
}

Status Step(Trainer& trainer, float first = 0.0f) {
  std::vector<float> x(kBatch * kInputs), y(kBatch * kOutputs);
  for (size_t i = 0; i < x.size(); ++i) x[i] = 0.1f * static_cast<float>(i * 7 % 11);
  for (size_t i = 0; i < y.size(); ++i) y[i] = x[i] - x[i + 9];
  x[0] += first;
  return trainer.step({{"x", x}, {"y", y}}).status();
}

// The shapes of the variables that hold optimizer state on a rank, by name.
std::map<std::string, std::string> StateTypes(Trainer& trainer) {
  std::map<std::string, std::string> types;
  const ir::Graph& graph = trainer.executor().graph();
  for (const ir::Node* node : graph.section(ir::SectionKind::kVariables)->nodes) {
    const ir::Value& value = *node->outputs[0];
    if (!ir::HasRole(value, Role::kOptimizerState)) continue;
    types[value.name] = graph.LocalType(value).ToString();
  }
  return types;
}

TEST(Adafactor, StatesAreRowsAndColumns) {
  const std::string rows = fmt::format("f32[{}]", kHidden + kOutputs);
  const std::string columns = fmt::format("f32[{}]", kInputs + kHidden);
  for (const auto& [ranks, stage] :
       {std::pair(1, 0), std::pair(2, 0), std::pair(2, 1), std::pair(3, 2), std::pair(4, 3)}) {
    SCOPED_TRACE(fmt::format("{} ranks, stage {}", ranks, stage));
    Config config;
    config.ranks = ranks;
    config.stage = stage;
    const Status status = OnTrainers(config, [&](Trainer& trainer) -> Status {
      const std::map<std::string, std::string> types = StateTypes(trainer);
      EXPECT_EQ(types.size(), 3u);
      int64_t bytes = 0;
      for (const auto& [name, type] : types) {
        const std::string state = name.substr(name.rfind('.') + 1);
        if (state != "variance") {
          EXPECT_EQ(type, state == "row_var" ? rows : columns) << name;
          continue;
        }
        // The biases, padded to 16 elements each and to 16 for each rank, whole or a rank's part.
        const int64_t padded = (32 + 16 + 16 * ranks - 1) / (16 * ranks) * (16 * ranks);
        const int64_t own = stage == 0 ? padded : padded / ranks;
        EXPECT_EQ(type, fmt::format("f32[{}]", own));
        bytes = 4 * (own + kHidden + kOutputs + kInputs + kHidden);
      }
      const auto category = static_cast<int>(MemoryCategory::kOptimizerState);
      const int64_t planned = trainer.program().memory.category_bytes[category];
      EXPECT_GE(planned, bytes);
      EXPECT_LT(planned, bytes + 3 * 64);  // buffers begin at multiples of 64 bytes
      ZG_RETURN_IF_ERROR(Step(trainer));
      EXPECT_EQ(trainer.executor().meter().category_bytes()[category], planned);
      return Status::Ok();
    });
    EXPECT_TRUE(status.ok()) << status.message();
  }
}

TEST(Adafactor, ThePlanSaysWhatStaysWhole) {
  Config config;
  config.ranks = 2;
  config.stage = 2;
  const Status status = OnTrainers(config, [&](Trainer& trainer) -> Status {
    for (const plan::Replicated& whole :
         plan::ListReplicated(trainer.executor().graph(), trainer.program().options.zero)) {
      if (whole.category != MemoryCategory::kOptimizerState) continue;
      EXPECT_EQ(whole.reason, "one number for each row or column of a matrix");
      EXPECT_EQ(whole.bytes, 4 * (kHidden + kOutputs + kInputs + kHidden));
      EXPECT_THAT(whole.tensors, ElementsAre("hidden.weight.row_var", "last.weight.row_var",
                                             "hidden.weight.col_var", "last.weight.col_var"));
      return Status::Ok();
    }
    return InvalidArgument("there are none");
  });
  EXPECT_TRUE(status.ok()) << status.message();
}

NamedValues WeightsAfter(const Config& config, int steps) {
  NamedValues weights;
  const Status status = OnTrainers(config, [&](Trainer& trainer) -> Status {
    for (int i = 0; i < steps; ++i) ZG_RETURN_IF_ERROR(Step(trainer));
    ZG_ASSIGN_OR_RETURN(weights, trainer.consolidate_parameters());
    return Status::Ok();
  });
  EXPECT_TRUE(status.ok()) << status.message();
  return weights;
}

// A group's factor applies to the learning rate of matrices and vectors alike.
TEST(Adafactor, GroupsHaveALearningRateOfTheirOwn) {
  Config slow, grouped;
  slow.optimizer = optim::Adafactor{.lr = 0.0125};
  grouped.groups = {{"slow", "**", std::nullopt, 0.25}};
  const NamedValues expected = WeightsAfter(slow, 2);
  const NamedValues fast = WeightsAfter({}, 2);
  const NamedValues got = WeightsAfter(grouped, 2);
  ASSERT_EQ(got.size(), 4u);
  for (const auto& [name, values] : got) {
    EXPECT_EQ(values.values, expected.at(name).values) << name;
    EXPECT_NE(values.values, fast.at(name).values) << name;
  }
}

TEST(Adafactor, AGradientThatOverflowsStopsTheRun) {
  const Status status = OnTrainers({}, [&](Trainer& trainer) -> Status {
    ZG_RETURN_IF_ERROR(Step(trainer));
    return Step(trainer, 1e19f);  // the loss is finite, the sum of the gradients' squares is not
  });
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(status.message(), HasSubstr("not finite"));
}

TEST(Adafactor, AnUpdateThatIsLeftOutChangesNothing) {
  Config config;
  config.on_non_finite = OnNonFinite::kSkip;
  const Status status = OnTrainers(config, [&](Trainer& trainer) -> Status {
    ZG_RETURN_IF_ERROR(Step(trainer));
    ZG_ASSIGN_OR_RETURN(const TensorDigest parameters, trainer.digest_parameters());
    ZG_ASSIGN_OR_RETURN(const OptimizerState state, trainer.consolidate_optimizer_state());
    ZG_RETURN_IF_ERROR(Step(trainer, std::numeric_limits<float>::infinity()));
    ZG_ASSIGN_OR_RETURN(const TensorDigest parameters_now, trainer.digest_parameters());
    EXPECT_EQ(parameters_now.sha256, parameters.sha256);
    ZG_ASSIGN_OR_RETURN(const OptimizerState now, trainer.consolidate_optimizer_state());
    for (const char* name : {"hidden.weight.row_var", "hidden.weight.col_var",
                             "hidden.bias.variance", "last.weight.row_var"}) {
      EXPECT_EQ(now.tensors.at(name).values, state.tensors.at(name).values) << name;
    }
    return Status::Ok();
  });
  EXPECT_TRUE(status.ok()) << status.message();
}

std::string ErrorOf(const optim::Adafactor& adafactor) {
  nn::Module root;
  nn::Linear layer(&root, "layer", 3, 2);
  Graph graph("g");
  graph.train(adafactor, [&](Inputs& in) {
    return mse_loss(layer(in.f32("x", {4, 3})), in.f32("y", {4, 2}));
  });
  return graph.status().message();
}

TEST(Adafactor, RejectsHyperparametersThatMakeNoRule) {
  EXPECT_EQ(ErrorOf({}), "");
  EXPECT_THAT(ErrorOf({.lr = -1.0}), HasSubstr("Adafactor: lr is -1, expected"));
  EXPECT_THAT(ErrorOf({.beta2_decay = 0.5}),
              HasSubstr("Adafactor: beta2_decay is 0.5, expected a finite number <= 0"));
  EXPECT_THAT(ErrorOf({.epsilon1 = -1e-8}), HasSubstr("Adafactor: epsilon1 is -1e-08, expected"));
  EXPECT_THAT(ErrorOf({.epsilon2 = -1.0}), HasSubstr("Adafactor: epsilon2 is -1, expected"));
  EXPECT_THAT(ErrorOf({.clip_threshold = 0.5}),
              HasSubstr("Adafactor: clip_threshold is 0.5, expected a finite number >= 1"));
  EXPECT_THAT(ErrorOf({.weight_decay = -0.1}),
              HasSubstr("Adafactor: weight_decay is -0.1, expected"));
}

}  // namespace
}  // namespace zg
