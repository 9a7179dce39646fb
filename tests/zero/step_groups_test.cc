// Steps that update the parameters of some groups: a generator and its critic in turns, as PyTorch
// trains them (tests/reference/make_turns.py), with the same bits at any stage and number of ranks.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "framework/nn/nn.h"
#include "tests/testing/on_device.h"
#include "tests/testing/results_on_ranks.h"
#include "tests/zero/game.h"
#include "tests/zero/trainer_run.h"

namespace zg::testing {
namespace {

using ::testing::HasSubstr;

TEST(StepGroups, TrainPlayersInTurnsAsPyTorchDoes) {
  for (const int ranks : {1, 3}) {
    for (const int stage : {0, 3}) {
      SCOPED_TRACE(fmt::format("{} ranks, stage {}", ranks, stage));
      struct Result {
        std::vector<std::vector<float>> losses;
        NamedValues last;
      };
      const auto results =
          ResultsOnRanks<Result>(ranks, [&](Communicator& communicator, Result* result) -> Status {
            Game game({stage}, communicator);
            ZG_RETURN_IF_ERROR(game.status());
            ZG_RETURN_IF_ERROR(SetFirstParameters(game.trainer()));
            for (int64_t step = 0; step < Reference()["steps"]; ++step) {
              ZG_RETURN_IF_ERROR(game.Step().status());
              std::vector<float>& losses = result->losses.emplace_back();
              for (const char* name : {"critic_loss", "generator_loss"}) {
                ZG_ASSIGN_OR_RETURN(const auto loss, game.trainer().step_result(name));
                losses.insert(losses.end(), loss.begin(), loss.end());
              }
            }
            ZG_ASSIGN_OR_RETURN(result->last, game.trainer().consolidate_parameters());
            return Status::Ok();
          });
      for (size_t step = 0; step < results[0].losses.size(); ++step) {
        ExpectNear(results[0].losses[step], Reference()["losses"][step]);
      }
      ASSERT_EQ(results[0].last.size(), Reference()["last"].size());
      for (const auto& [name, tensor] : results[0].last) {
        SCOPED_TRACE(name);
        ExpectNear(tensor.values, Reference()["last"][name]);
      }
    }
  }
}

// Steps of one player each, then one of both.
std::string RunOf(int ranks, const Config& config, int64_t save_after = -1) {
  constexpr int64_t kTurns = 7;
  return LossesOf<Game>(ranks, config, kTurns + 1, save_after, [](Game& game) {
    if (game.trainer().steps_done() < kTurns) return game.Step();
    return game.trainer().step([&](int64_t micro) { return game.Feed(kTurns, micro); });
  });
}

TEST(StepGroups, HaveTheSameBitsAtAnyStageOnAnyNumberOfRanks) {
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    SCOPED_TRACE(DTypeName(dtype));
    const Config config = {0, dtype};
    const std::string expected = RunOf(1, config);
    ExpectSameBits(expected, config, /*overlap_bytes=*/512,
                   [](int ranks, const Config& other) { return RunOf(ranks, other); });
    EXPECT_EQ(RunOf(2, {3, dtype}, /*save_after=*/4), expected) << "resumed";
  }
}

TEST(StepGroups, HaveTheSameBitsWithEarlyUpdates) {
  Config config;
  config.micro_batches = 2;
  const std::string expected = RunOf(1, config);
  config.update_early = true;
  for (const int stage : {0, 1, 2, 3}) {
    SCOPED_TRACE(stage);
    config.stage = stage;
    config.overlap_bytes = 0;
    EXPECT_EQ(RunOf(2, config), expected);
    config.overlap_bytes = 512;
    EXPECT_EQ(RunOf(2, config), expected) << "overlap";
  }
}

TEST(StepGroups, HaveTheSameBitsOnADevice) {
  const std::string expected = RunOf(1, {});
  Config config;
  config.on_device = true;
  for (const int ranks : {1, 2}) {
    config.stage = ranks;
    EXPECT_EQ(RunOf(ranks, config), expected) << ranks;
  }
}

// The first update of a group is that of a run's first step, whatever others have done before.
TEST(StepGroups, CountTheirOwnUpdates) {
  const std::vector<std::pair<const char*, optim::Optimizer>> optimizers = {
      {"adam", optim::Adam{0.02}},        {"lamb", optim::Lamb{0.02}},
      {"adafactor", optim::Adafactor{}},  {"adamw8bit", optim::AdamW8bit{0.02}},
      {"muon", optim::Muon{0.02}},        {"schedule_free", optim::ScheduleFreeAdamW{0.02}},
      {"rmsprop", optim::RmsProp{0.002}},
  };
  for (const auto& [name, optimizer] : optimizers) {
    SCOPED_TRACE(name);
    Config config = {1};
    config.optimizer = optimizer;
    const auto digests = ResultsOnRanks<std::vector<std::string>>(
        2, [&](Communicator& communicator, std::vector<std::string>* result) -> Status {
          NamedValues parameters;
          for (const bool is_first : {true, false}) {
            Game game(config, communicator);
            ZG_RETURN_IF_ERROR(game.status());
            Trainer& trainer = game.trainer();
            const auto step_of = [&](const char* player) {
              const auto feed = [&](int64_t micro_batch) { return game.Feed(0, micro_batch); };
              return trainer.step_groups({player}, feed).status();
            };
            if (is_first) {
              for (int i = 0; i < 3; ++i) ZG_RETURN_IF_ERROR(step_of("critic"));
              ZG_ASSIGN_OR_RETURN(parameters, trainer.consolidate_parameters());
            } else {
              ZG_RETURN_IF_ERROR(trainer.scatter_parameters(parameters));
            }
            ZG_RETURN_IF_ERROR(step_of(""));
            ZG_ASSIGN_OR_RETURN(const TensorDigest digest, trainer.digest_parameters());
            result->push_back(digest.sha256);
          }
          return Status::Ok();
        });
    EXPECT_EQ(digests[0][0], digests[0][1]);
  }
}

// How often a step on one rank runs an op, in all of its micro-batches.
int64_t CallsOf(Game& game, const std::string& op) {
  int64_t calls = 0;
  const Profile profile = *game.trainer().executor().profile();
  for (const ProfileRow& row : profile.rows) {
    if (row.op == op) calls += row.calls;
  }
  return calls;
}

TEST(StepGroups, LeaveOutWhatOnlyOthersNeed) {
  const auto calls = ResultsOnRanks<std::vector<int64_t>>(
      1, [&](Communicator& communicator, std::vector<int64_t>* result) -> Status {
        Config config;
        config.profile = true;
        for (const std::vector<std::string>& groups :
             std::vector<std::vector<std::string>>{{"", "critic"}, {"critic"}, {""}}) {
          Game game(config, communicator);
          ZG_RETURN_IF_ERROR(game.status());
          for (int i = 0; i < 2; ++i) {  // the first one warms up
            const auto feed = [&](int64_t micro_batch) { return game.Feed(0, micro_batch); };
            ZG_RETURN_IF_ERROR(game.trainer().step_groups(groups, feed).status());
          }
          for (const char* op : {"tanh", "tanh_grad", "adam_update"}) {
            result->push_back(CallsOf(game, op));
          }
        }
        return Status::Ok();
      });
  EXPECT_THAT(calls[0], ::testing::ElementsAre(24, 24, 7, 24, 12, 3, 24, 12, 4));
}

TEST(StepGroups, KeepTheStateOfOthers) {
  ResultsOnRanks<int>(2, [&](Communicator& communicator, int*) -> Status {
    Config config = {2};
    config.reduce_every = ReduceEvery::kStep;
    Game game(config, communicator);
    ZG_RETURN_IF_ERROR(game.status());
    ZG_RETURN_IF_ERROR(game.trainer()
                           .step([&](int64_t micro_batch) { return game.Feed(0, micro_batch); })
                           .status());
    ZG_ASSIGN_OR_RETURN(const OptimizerState before, game.trainer().consolidate_optimizer_state());
    ZG_RETURN_IF_ERROR(game.Step().status());
    ZG_ASSIGN_OR_RETURN(const OptimizerState after, game.trainer().consolidate_optimizer_state());
    EXPECT_EQ(after.step, 2);
    EXPECT_EQ(after.skipped_steps, (std::map<std::string, int64_t>{{"", 1}}));
    for (const auto& [name, tensor] : after.tensors) {
      const bool is_of_critic = name.rfind("critic", 0) == 0;
      EXPECT_EQ(tensor.values == before.tensors.at(name).values, !is_of_critic) << name;
    }
    return Status::Ok();
  });
}

TEST(StepGroups, StateMovesToAnotherTrainer) {
  const auto digests = ResultsOnRanks<std::vector<std::string>>(
      2, [&](Communicator& communicator, std::vector<std::string>* result) -> Status {
        NamedValues parameters;
        OptimizerState own, whole;
        for (const int stage : {1, 1, 3}) {
          Game game({stage}, communicator);
          ZG_RETURN_IF_ERROR(game.status());
          Trainer& trainer = game.trainer();
          if (result->empty()) {
            for (int i = 0; i < 4; ++i) ZG_RETURN_IF_ERROR(game.Step().status());
            ZG_ASSIGN_OR_RETURN(parameters, trainer.consolidate_parameters());
            ZG_ASSIGN_OR_RETURN(own, trainer.local_optimizer_state());
            ZG_ASSIGN_OR_RETURN(whole, trainer.consolidate_optimizer_state());
          } else {
            ZG_RETURN_IF_ERROR(trainer.scatter_parameters(parameters));
            ZG_RETURN_IF_ERROR(stage == 1 ? trainer.load_optimizer_state(own)
                                          : trainer.scatter_optimizer_state(whole));
          }
          for (int i = 0; i < 2; ++i) ZG_RETURN_IF_ERROR(game.Step().status());
          ZG_ASSIGN_OR_RETURN(const TensorDigest digest, trainer.digest_parameters());
          result->push_back(digest.sha256);
        }
        return Status::Ok();
      });
  EXPECT_EQ(digests[0][1], digests[0][0]);
  EXPECT_EQ(digests[0][2], digests[0][0]);
}

// Parameters of both players are left out of steps 3 and 4.
StatusOr<float> StepWithout(Game& game, const std::string& parameters) {
  Trainer& trainer = game.trainer();
  if (trainer.steps_done() == 2) ZG_RETURN_IF_ERROR(trainer.freeze(parameters));
  if (trainer.steps_done() == 4) ZG_RETURN_IF_ERROR(trainer.unfreeze(parameters));
  return game.Step();
}

// Its own first update is as long as the learning rate, in any step.
TEST(StepGroups, AParameterThatJoinsHasACountOfItsOwn) {
  ResultsOnRanks<int>(1, [&](Communicator& communicator, int*) -> Status {
    Game game({}, communicator);
    ZG_RETURN_IF_ERROR(game.status());
    std::vector<float> values;
    for (int64_t step = 0; step < 6; ++step) {
      ZG_RETURN_IF_ERROR(StepWithout(game, "*.hidden.weight").status());
      ZG_ASSIGN_OR_RETURN(const NamedValues all, game.trainer().consolidate_parameters());
      const std::vector<float> before =
          std::exchange(values, all.at("generator.hidden.weight").values);
      if (step < 2) continue;
      for (size_t i = 0; i < values.size(); ++i) {
        EXPECT_NEAR(std::abs(values[i] - before[i]), step == 5 ? 0.02 : 0, 1e-5);
      }
    }
    return Status::Ok();
  });
}

TEST(StepGroups, HaveTheSameBitsIfParametersJoin) {
  const auto run_of = [](int ranks, const Config& config, int64_t save_after = -1) {
    return LossesOf<Game>(ranks, config, 8, save_after, [](Game& game) {
      return StepWithout(game, "generator.hidden.weight,critic.output.*");
    });
  };
  const std::string expected = run_of(1, {});
  ExpectSameBits(expected, Config(), /*overlap_bytes=*/512,
                 [&](int ranks, const Config& other) { return run_of(ranks, other); });
  for (const int64_t save_after : {3, 5, 7}) {
    EXPECT_EQ(run_of(2, {3}, save_after), expected) << "resumed after " << save_after;
  }
}

// It keeps its state and its count.
TEST(StepGroups, AParameterMayMoveToANewGroup) {
  const auto run_of = [](bool moves) {
    return LossesOf<Game>(2, Config{2}, 8, -1, [&](Game& game) -> StatusOr<float> {
      Trainer& trainer = game.trainer();
      const int64_t step = trainer.steps_done();
      if (moves && step == 4) {
        ZG_RETURN_IF_ERROR(trainer.add_parameter_group({"moved", "generator.hidden.*"}));
      }
      std::vector<std::string> groups = {step % 3 == 2 ? "" : "critic"};
      if (moves && step == 5) groups.push_back("moved");
      return trainer.step_groups(groups, [&](int64_t micro) { return game.Feed(step, micro); });
    });
  };
  EXPECT_EQ(run_of(true), run_of(false));
}

constexpr auto& ErrorOf = ErrorOfRun<Game, Config>;

Status StepOf(Game& game, const std::vector<std::string>& groups) {
  return game.trainer()
      .step_groups(groups, [&](int64_t micro_batch) { return game.Feed(0, micro_batch); })
      .status();
}

TEST(StepGroups, Errors) {
  EXPECT_THAT(ErrorOf(1, {}, [](Game& game, int) { return StepOf(game, {"crtic"}); }),
              HasSubstr("step_groups: got 'crtic', expected groups among '', 'critic'"));
  EXPECT_THAT(ErrorOf(1, {}, [](Game& game, int) { return StepOf(game, {}); }),
              HasSubstr("step_groups: got no group, expected some of '', 'critic'"));
  Config half;
  half.dtype = DType::kF16;
  EXPECT_THAT(ErrorOf(1, half, [](Game& game, int) { return StepOf(game, {"critic"}); }),
              HasSubstr("step_groups: with dtype f16 all groups share"));
  EXPECT_THAT(
      ErrorOf(2, {},
              [](Game& game, int rank) { return StepOf(game, {rank == 0 ? "" : "critic"}); }),
      HasSubstr(
          "step 1: the step updates the groups 'critic' on rank 1, but updates the groups '' on rank 0"));
}

}  // namespace
}  // namespace zg::testing
