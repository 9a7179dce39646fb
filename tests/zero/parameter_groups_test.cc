// Groups of parameters have their own optimizer and learning rate; a bucket has parameters of one
// group; checkpoints and programs record the groups.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "framework/comm/in_process.h"
#include "framework/nn/nn.h"
#include "framework/ops/register_all_ops.h"
#include "zero/zerograph/make_trainer.h"

namespace zg {
namespace {

using ::testing::HasSubstr;

struct Model : nn::Module {
  nn::Linear hidden{this, "hidden", 6, 8};
  nn::Linear last{this, "last", 8, 3};
};

using Groups = std::vector<optim::ParameterGroup>;

struct Config {
  int ranks = 1;
  int stage = 0;
  std::string resume = {};
  std::string save = {};
};

// Three steps; the parameters by name on rank 0.
StatusOr<NamedValues> Train(const optim::Optimizer& optimizer, const Groups& groups,
                            const Config& config = {}) {
  RegisterAllOps();
  NamedValues result;
  ZG_RETURN_IF_ERROR(RunRanks(config.ranks, [&](Communicator& communicator) -> Status {
    Model model;
    Graph graph("groups");
    graph.train(optimizer, [&](Inputs& in) {
      return mse_loss(model.last(relu(model.hidden(in.f32("x", {2, 6})))), in.f32("y", {2, 3}));
    });
    for (const optim::ParameterGroup& group : groups) graph.add_parameter_group(group);
    graph.config().zero.stage = config.stage;
    graph.config().micro_batches = 6;
    ZG_ASSIGN_OR_RETURN(const std::unique_ptr<Trainer> trainer, make_trainer(graph, communicator));
    if (!config.resume.empty()) ZG_RETURN_IF_ERROR(trainer->resume(config.resume));
    std::vector<float> x(12);
    std::vector<float> y(6);
    for (int step = 0; step < 3; ++step) {
      ZG_RETURN_IF_ERROR(trainer
                             ->step([&](int64_t micro_batch) {
                               for (size_t i = 0; i < x.size(); ++i) {
                                 x[i] = 0.1f * static_cast<float>((i * 7 + micro_batch * 3) % 11);
                               }
                               for (size_t i = 0; i < y.size(); ++i) y[i] = x[i] - x[i + 6];
                               return trainer->feed({{"x", x}, {"y", y}});
                             })
                             .status());
    }
    if (!config.save.empty()) ZG_RETURN_IF_ERROR(trainer->save(config.save));
    ZG_ASSIGN_OR_RETURN(NamedValues whole, trainer->consolidate_parameters());
    if (communicator.rank() == 0) result = std::move(whole);
    return Status::Ok();
  }));
  return result;
}

std::vector<float> Of(const StatusOr<NamedValues>& values, const std::string& name) {
  EXPECT_TRUE(values.ok()) << values.status().message();
  return values.ok() ? values->find(name)->second.values : std::vector<float>();
}

TEST(ParameterGroups, HaveTheirOwnOptimizer) {
  const optim::AdamW base{.lr = 0.01, .weight_decay = 0.5};
  const optim::AdamW no_decay{.lr = 0.01, .weight_decay = 0.0};
  const auto with_decay = Train(base, {});
  const auto without = Train(no_decay, {});
  const auto grouped = Train(base, {{"no_decay", "**.bias", no_decay}});
  // The first step's gradients are the same, later ones are not: compares the biases' first order.
  EXPECT_NE(Of(grouped, "last.bias"), Of(with_decay, "last.bias"));
  EXPECT_NE(Of(grouped, "last.weight"), Of(without, "last.weight"));

  // Groups that differ in nothing change no bit.
  const auto same = Train(base, {{"a", "hidden", base}, {"b", "**.bias"}});
  for (const char* name : {"hidden.weight", "hidden.bias", "last.weight", "last.bias"}) {
    EXPECT_EQ(Of(same, name), Of(with_decay, name)) << name;
  }
}

TEST(ParameterGroups, SameBitsAtEveryStageAndOnAnyNumberOfRanks) {
  const Groups groups = {{"biases", "**.bias", optim::Sgd{.lr = 0.1, .momentum = 0.9}},
                         {"head", "last", optim::Lion{.lr = 0.01}, 0.5}};
  const auto one = Train(optim::AdamW{.lr = 0.01}, groups);
  for (const int ranks : {2, 3}) {
    for (int stage = 0; stage <= 3; ++stage) {
      SCOPED_TRACE(fmt::format("{} ranks, stage {}", ranks, stage));
      const auto other = Train(optim::AdamW{.lr = 0.01}, groups, {ranks, stage});
      for (const char* name : {"hidden.weight", "hidden.bias", "last.weight", "last.bias"}) {
        EXPECT_EQ(Of(other, name), Of(one, name)) << name;
      }
    }
  }
}

TEST(ParameterGroups, HaveAFactorOnTheLearningRate) {
  const auto by_factor = Train(optim::Sgd{.lr = 0.1}, {{"head", "last", std::nullopt, 0.5}});
  const auto sgd = Train(optim::Sgd{.lr = 0.1}, {{"head", "last", optim::Sgd{.lr = 0.05}}});
  EXPECT_EQ(Of(by_factor, "last.weight"), Of(sgd, "last.weight"));
  EXPECT_EQ(Of(by_factor, "hidden.weight"), Of(sgd, "hidden.weight"));
}

TEST(ParameterGroups, AreComparedWhenARunIsResumed) {
  const std::string directory = ::testing::TempDir() + "/groups";
  std::filesystem::remove_all(directory);
  const optim::Sgd sgd{.lr = 0.1};
  ASSERT_TRUE(Train(sgd, {{"head", "last", optim::Sgd{.lr = 0.2}}}, {1, 0, "", directory}).ok());
  EXPECT_TRUE(Train(sgd, {{"head", "last", optim::Sgd{.lr = 0.2}}}, {2, 3, directory}).ok());
  const auto other = Train(sgd, {{"head", "last", optim::Sgd{.lr = 0.3}}}, {1, 0, directory});
  EXPECT_THAT(
      other.status().message(),
      HasSubstr("group 1 'head': got \"last: sgd_update lr=0.3 weight_decay=0.0\", expected "
                "\"last: sgd_update lr=0.2 weight_decay=0.0\""));
}

TEST(ParameterGroups, RejectWhatIsNone) {
  const auto error = [](const Groups& groups) {
    return Train(optim::Sgd{.lr = 0.1}, groups).status().message();
  };
  EXPECT_THAT(error({{"head", "lst.*"}}),
              HasSubstr("graph groups, parameter group 'head': 'lst.*' names no parameter of the "
                        "graph; it has hidden.weight, hidden.bias, last.weight, last.bias"));
  EXPECT_THAT(error({{"a", "last"}, {"a", "hidden"}}),
              HasSubstr("two parameter groups are named 'a'"));
  EXPECT_THAT(error({{"", "last"}}),
              HasSubstr("parameter group '': expected a name of letters, digits and '_'"));
  EXPECT_THAT(error({{"a", "last", optim::Sgd{.lr = -1}}}),
              HasSubstr("Sgd: lr is -1, expected a finite number >= 0"));
  EXPECT_THAT(error({{"a", "last", std::nullopt, -1.0}}),
              HasSubstr("lr_factor is -1, expected a finite number >= 0"));
}

}  // namespace
}  // namespace zg
