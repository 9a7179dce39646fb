// Training in phases, each with inputs and a loss of its own: as PyTorch trains a generator and its
// critic (tests/reference/make_turns.py), as a graph of one phase alone, and with the same bits at any
// stage, on any number of ranks.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "framework/nn/nn.h"
#include "tests/testing/as_planned.h"
#include "tests/testing/results_on_ranks.h"
#include "tests/zero/game.h"
#include "tests/zero/phased_run.h"
#include "tests/zero/trainer_run.h"

namespace zg::testing {
namespace {

constexpr int64_t kSteps = 9;

std::string PhaseOf(int64_t step) { return kPhases[(step * step + step / 4) % 3]; }

std::string RunOf(int ranks, const PhasedConfig& config, int64_t save_after = -1) {
  return LossesOf<PhasedRun>(ranks, config, kSteps, save_after, [](PhasedRun& run) {
    return run.Step(PhaseOf(run.trainer().steps_done()));
  });
}

// The critic's steps take noise and real samples, the generator's noise alone.
TEST(Phases, TrainPlayersInTurnsAsPyTorchDoes) {
  for (const int ranks : {1, 3}) {
    SCOPED_TRACE(ranks);
    const auto last = ResultsOnRanks<NamedValues>(
        ranks, [&](Communicator& communicator, NamedValues* result) -> Status {
          Players players;
          Graph graph("game");
          const auto noise = [](Inputs& in) { return in.f32("noise", {kMicroBatch, kNoise}); };
          const auto critic = [&](Inputs& in) {
            const Var made = stop_gradient(players.generator(noise(in)));
            const Var real = in.f32("real", {kMicroBatch, kInputs});
            return mean(softplus(-players.critic(real)) + softplus(players.critic(made)));
          };
          const auto generator = [&](Inputs& in) {
            const Var made = players.generator(noise(in));
            const nn::ConstantParameters constant(players.critic);
            return mean(softplus(-players.critic(made)));
          };
          optim::Adam adam{0.02};
          adam.beta1 = 0.5;
          optim::AdamW adamw{0.03};
          adamw.weight_decay = 0.1;
          graph.train(adam, {{"critic", critic}, {"generator", generator}});
          graph.add_parameter_group({"critic", "critic.**", adamw});
          graph.config().zero.stage = ranks;
          graph.config().micro_batches = 6;
          ZG_ASSIGN_OR_RETURN(const auto trainer, make_trainer(graph, communicator));
          ZG_RETURN_IF_ERROR(SetFirstParameters(*trainer));
          for (int64_t step = 0; step < Reference()["steps"]; ++step) {
            const bool is_critic = step % 3 != 2;
            ZG_RETURN_IF_ERROR(trainer->set_phase(is_critic ? "critic" : "generator"));
            std::vector<float> z, real;
            const auto loss = trainer->step([&](int64_t micro) {
              z = SamplesOf("noise", kNoise, step, micro);
              real = SamplesOf("real", kInputs, step, micro);
              return is_critic ? trainer->feed({{"noise", z}, {"real", real}})
                               : trainer->feed({{"noise", z}});
            });
            ZG_RETURN_IF_ERROR(loss.status());
            EXPECT_NEAR(*loss, Reference()["losses"][step][is_critic ? 0 : 1].get<float>(), 1e-5);
            EXPECT_EQ(trainer->stepping_program().lr, is_critic ? 0.03 : 0.02);
          }
          ZG_ASSIGN_OR_RETURN(*result, trainer->consolidate_parameters());
          return Status::Ok();
        })[0];
    ASSERT_EQ(last.size(), Reference()["last"].size());
    for (const auto& [name, tensor] : last) {
      SCOPED_TRACE(name);
      ExpectNear(tensor.values, Reference()["last"][name]);
    }
  }
}

TEST(Phases, HaveTheSameBitsAtAnyStageOnAnyNumberOfRanks) {
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    SCOPED_TRACE(DTypeName(dtype));
    PhasedConfig config = {0, dtype};
    const std::string expected = RunOf(1, config);
    ExpectSameBits(expected, config, /*overlap_bytes=*/512,
                   [](int ranks, const PhasedConfig& other) { return RunOf(ranks, other); });
    config = {3, dtype};
    config.recomputes = true;
    config.threads = 2;
    EXPECT_EQ(RunOf(2, config), expected) << "recomputed, on two threads";
    EXPECT_EQ(RunOf(2, {3, dtype}, /*save_after=*/4), expected) << "resumed";
    if (dtype == DType::kBF16) continue;
    config = {2, dtype};
    config.on_device = true;
    EXPECT_EQ(RunOf(2, config), expected) << "on a device";
  }
}

// Each has a recording of its own.
TEST(Phases, HaveTheSameBitsRecorded) {
  PhasedConfig config;
  config.change = [](CompileOptions& options) { options.micro_batches = 1; };
  const std::string expected = RunOf(1, config);
  config.on_device = config.records = true;
  EXPECT_EQ(RunOf(1, config), expected);
}

// Parameters that are frozen, or in f32, are in some phases only.
TEST(Phases, HaveTheSameBitsWithFrozenParametersInSixteenBits) {
  PhasedConfig config;
  config.dtype = DType::kBF16;
  config.change = [](CompileOptions& options) {
    options.round_frozen = true;
    options.f32_modules = {"decoder"};
  };
  const std::string expected = RunOf(1, config);
  EXPECT_NE(expected, RunOf(1, {0, DType::kBF16}));
  for (const int stage : {0, 3}) {
    config.stage = stage;
    EXPECT_EQ(RunOf(3, config), expected);
  }
}

TEST(Phases, ChangeBetweenSteps) {
  const auto run_of = [](int ranks, int stage) {
    return ResultsOnRanks<std::string>(ranks, [&](Communicator& communicator, std::string* result) {
      PhasedRun run({stage}, communicator);
      ZG_RETURN_IF_ERROR(run.status());
      ZG_RETURN_IF_ERROR(run.trainer().freeze("norm.weight"));
      for (int64_t step = 0; step < kSteps; ++step) {
        if (step == 4) ZG_RETURN_IF_ERROR(run.trainer().set_optimizer(optim::AdamW{0.05}));
        if (step == 5) ZG_RETURN_IF_ERROR(run.trainer().freeze("encoder"));
        if (step == 7) ZG_RETURN_IF_ERROR(run.trainer().unfreeze("encoder.**,norm.weight"));
        ZG_RETURN_IF_ERROR(run.Step(PhaseOf(step)).status());
      }
      ZG_ASSIGN_OR_RETURN(const TensorDigest parameters, run.trainer().digest_parameters());
      *result = parameters.sha256;
      return Status::Ok();
    })[0];
  };
  EXPECT_EQ(run_of(2, 3), run_of(1, 0));
}

TEST(Phases, ClipTheGradientsThatTheyHave) {
  PhasedConfig config;
  config.clips = true;
  const std::string expected = RunOf(1, config);
  EXPECT_NE(expected, RunOf(1, {}));
  for (const int stage : {1, 3}) {
    config.stage = stage;
    EXPECT_EQ(RunOf(3, config), expected);
  }
}

// The parameters after five steps of one phase, by name.
NamedValues After(const std::string& phase, int ranks, const PhasedConfig& config) {
  return ResultsOnRanks<NamedValues>(
      ranks, [&](Communicator& communicator, NamedValues* result) -> Status {
        PhasedRun run(config, communicator);
        ZG_RETURN_IF_ERROR(run.status());
        for (int64_t step = 0; step < 5; ++step) ZG_RETURN_IF_ERROR(run.Step(phase).status());
        ZG_ASSIGN_OR_RETURN(*result, run.trainer().consolidate_parameters());
        return Status::Ok();
      })[0];
}

void ExpectAsGraphsOfTheirOwn(int ranks, PhasedConfig config) {
  for (const std::string& phase : kPhases) {
    SCOPED_TRACE(phase);
    config.only = "";
    const NamedValues got = After(phase, ranks, config);
    config.only = phase;
    const NamedValues expected = After(phase, ranks, config);
    EXPECT_GE(expected.size(), 4u);
    for (const auto& [name, tensor] : expected)
      EXPECT_EQ(got.at(name).values, tensor.values) << name;
  }
}

TEST(Phases, TrainWhatGraphsOfTheirOwnWould) {
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    for (const bool clips : {false, true}) {
      SCOPED_TRACE(fmt::format("{} {}", DTypeName(dtype), clips ? "clipped" : ""));
      PhasedConfig config = {2, dtype};
      config.clips = clips;
      ExpectAsGraphsOfTheirOwn(2, config);
    }
  }
}

TEST(Phases, HaveAnyOptimizer) {
  const std::vector<std::pair<const char*, optim::Optimizer>> optimizers = {
      {"sgd", optim::Sgd{0.1, 0.9}},
      {"lamb", optim::Lamb{0.02}},
      {"adafactor", optim::Adafactor{}},
      {"adamw8bit", optim::AdamW8bit{0.02}},
      {"muon", optim::Muon{0.02}},
      {"schedule_free", optim::ScheduleFreeAdamW{0.02}},
      {"averages", optim::with_ema(optim::rule_of(optim::AdamW{0.02}), 0.9)},
  };
  for (const auto& [name, optimizer] : optimizers) {
    for (const int stage : {0, 3}) {
      SCOPED_TRACE(fmt::format("{} {}", name, stage));
      PhasedConfig config = {stage};
      config.optimizer = optimizer;
      ExpectAsGraphsOfTheirOwn(2, config);
    }
  }
}

TEST(Phases, HaveAnyCompileOptions) {
  using Change = std::function<void(CompileOptions & options)>;
  const std::vector<std::pair<const char*, Change>> changes = {
      {"replicas",
       [](auto& options) {
         options.mesh = {{"replica", 2}, {"shard", 1}};
       }},
      {"owners", [](auto& options) { options.zero.partition = Partition::kBalanced; }},
      {"small ones stay", [](auto& options) { options.zero.shard_min_elements = 40; }},
      {"early updates",
       [](auto& options) {
         options.micro_batches = 2;
         options.update_early = true;
       }},
      {"by step", [](auto& options) { options.reduce_every = ReduceEvery::kStep; }},
      {"stages by name", [](auto& options) { options.zero.place("encoder", 1); }},
      {"tensor axis",
       [](auto& options) {
         options.mesh = {{"data", 1}, {"tensor", 2}};
         options.place("encoder", "tensor", Sbp::S(0));
       }},
  };
  for (const auto& [name, change] : changes) {
    SCOPED_TRACE(name);
    PhasedConfig config = {3};
    config.change = change;
    ExpectAsGraphsOfTheirOwn(2, config);
  }
}

TEST(Phases, NeedWhatIsPlanned) {
  for (const int stage : {0, 1, 2, 3}) {
    SCOPED_TRACE(stage);
    ResultsOnRanks<int>(2, [&](Communicator& communicator, int*) -> Status {
      PhasedRun run({stage}, communicator);
      ZG_RETURN_IF_ERROR(run.status());
      for (const std::string& phase : kPhases) {
        ZG_RETURN_IF_ERROR(run.trainer().set_phase(phase));
        ZG_ASSIGN_OR_RETURN(const TrafficCounters before, run.trainer().step_traffic());
        const Program& program = run.trainer().stepping_program();
        EXPECT_EQ(program.variant.phase, phase);
        ZG_RETURN_IF_ERROR(run.Step(phase).status());
        ZG_RETURN_IF_ERROR(run.Step(phase).status());
        ZG_ASSIGN_OR_RETURN(const TrafficCounters after, run.trainer().step_traffic());
        TrafficCounters own = {};
        AddDifference(before, after, &own);
        SCOPED_TRACE(phase);
        ExpectTraffic(program.traffic, 2, own);
      }
      ZG_RETURN_IF_ERROR(
          run.trainer().eval("classes", {{"x", std::vector<float>(kFew * kInputs, 0.5f)}}));
      ExpectMemoryAsPlanned(run.trainer().executor());
      for (const Executor* executor : run.trainer().executors()) {
        EXPECT_LE(executor->meter().peak_bytes(), executor->plan().arena_bytes);
      }
      return Status::Ok();
    });
  }
}

// What a phase does not train costs it nothing.
TEST(Phases, SendTheirOwnGradientsAlone) {
  ResultsOnRanks<int>(2, [&](Communicator& communicator, int*) -> Status {
    PhasedRun run({2}, communicator);
    ZG_RETURN_IF_ERROR(run.status());
    std::vector<int64_t> sent;
    for (const std::string& phase : kPhases) {
      ZG_RETURN_IF_ERROR(run.trainer().set_phase(phase));
      int64_t bytes = 0;
      for (const auto& [op, traffic] : run.trainer().stepping_program().traffic) {
        if (op == "reduce_scatter") bytes += traffic.bytes;
      }
      sent.push_back(bytes);
    }
    EXPECT_GT(sent[1], sent[2]);
    EXPECT_GT(sent[2], 0);
    EXPECT_EQ(sent[0], sent[1] + sent[2]);
    return Status::Ok();
  });
}

}  // namespace
}  // namespace zg::testing
