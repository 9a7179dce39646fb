// Hyperparameters change between steps: the next steps have the bits of a run that began with the new
// ones and the same state, at every stage, on any number of ranks, without compiling where that can be.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "framework/nn/nn.h"
#include "framework/state/tensor_state.h"
#include "tests/testing/results_on_ranks.h"
#include "zero/zerograph/make_trainer.h"

namespace zg {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kBatch = 4;
constexpr int kMicroBatches = 6;  // of 1, 2 and 3 ranks

struct Model : nn::Module {
  nn::Linear hidden{this, "hidden", 6, 8};
  nn::Linear last{this, "last", 8, 3};
};

struct Config {
  int ranks = 1;
  int stage = 0;
  DType dtype = DType::kF32;
  double max_grad_norm = 0;
  bool has_head = false;  // a group "head" of the last layer
};

class SmallRun {
 public:
  SmallRun(const Config& config, const optim::Optimizer& optimizer, Communicator& communicator)
      : graph_("hyperparameters") {
    graph_.train(optimizer, [&](Inputs& in) {
      const Var x = in.f32("x", {kBatch, 6});
      return cross_entropy(model_.last(relu(model_.hidden(x))), in.i64("y", {kBatch}));
    });
    if (config.has_head) graph_.add_parameter_group({"head", "last", optimizer, 0.5});
    graph_.config().zero.stage = config.stage;
    graph_.config().zero.bucket_bytes = 128;
    graph_.config().micro_batches = kMicroBatches;
    graph_.config().dtype = config.dtype;
    graph_.config().max_grad_norm = config.max_grad_norm;
    made_ = make_trainer(graph_, communicator);
  }

  Status status() const { return made_.status(); }
  Trainer& trainer() { return **made_; }

  Status StepUntil(int64_t step) {
    std::vector<float> x(kBatch * 6);
    std::vector<int64_t> y(kBatch);
    while (trainer().steps_done() < step) {
      ZG_ASSIGN_OR_RETURN(const float loss, trainer().step([&](int64_t micro_batch) {
        const int64_t first = 7 * trainer().steps_done() + 5 * micro_batch;
        for (size_t i = 0; i < x.size(); ++i) x[i] = 0.1f * ((first + 3 * i) % 11) - 0.4f;
        for (int64_t i = 0; i < kBatch; ++i) y[i] = (first + i) % 3;
        return trainer().feed({{"x", x}, {"y", y}});
      }));
      losses_.push_back(loss);
    }
    return Status::Ok();
  }

  // Losses and digests.
  StatusOr<std::string> Result() {
    ZG_ASSIGN_OR_RETURN(const TensorDigest parameters, trainer().digest_parameters());
    ZG_ASSIGN_OR_RETURN(const TensorDigest state, trainer().digest_optimizer_state());
    return fmt::format("{} {} {}", fmt::join(losses_, " "), parameters.sha256, state.sha256);
  }

 private:
  Model model_;
  Graph graph_;
  StatusOr<std::unique_ptr<Trainer>> made_ = InvalidArgument("not made");
  std::vector<float> losses_;
};

// What `body` returns on rank 0.
std::string OnRanks(int ranks, const std::function<StatusOr<std::string>(Communicator&)>& body) {
  const auto results = testing::TryOnRanks<std::string>(
      ranks, [&](Communicator& communicator, std::string* result) -> Status {
        ZG_ASSIGN_OR_RETURN(*result, body(communicator));
        return Status::Ok();
      });
  if (!results.ok()) return results.status().message();
  return (*results)[0];
}

struct Case {
  std::string name;
  optim::Optimizer before;
  optim::Optimizer after;
  bool compiles = false;  // again, because the rule is in more than its updates
};

optim::Optimizer Adamw(double lr, double beta1, double weight_decay) {
  optim::AdamW adamw{lr};
  adamw.beta1 = beta1;
  adamw.weight_decay = weight_decay;
  return adamw;
}

optim::Optimizer Momentum(double momentum, bool nesterov) {
  optim::Sgd sgd{0.05};
  sgd.momentum = momentum;
  sgd.nesterov = nesterov;
  return sgd;
}

optim::Optimizer OfMuon(double momentum) {
  optim::Muon muon;
  muon.momentum = momentum;
  muon.of_vectors.weight_decay = momentum / 10;
  return muon;
}

optim::Optimizer EightBits(double beta2) {
  optim::AdamW8bit adamw;
  adamw.beta2 = beta2;
  adamw.min_elements = 16;
  return adamw;
}

template <typename T>
optim::Optimizer Decayed(double weight_decay) {
  T optimizer;
  optimizer.lr = 0.01;
  optimizer.weight_decay = weight_decay;
  return optimizer;
}

std::vector<Case> Cases() {
  return {{"adamw", Adamw(0.01, 0.9, 0.0), Adamw(0.02, 0.8, 0.3)},
          {"sgd", Momentum(0.5, false), Momentum(0.9, true)},
          {"muon", OfMuon(0.85), OfMuon(0.95)},
          {"adamw_8bit", EightBits(0.999), EightBits(0.9)},
          {"lion", Decayed<optim::Lion>(0.1), Decayed<optim::Lion>(0.2)},
          // It gains a term.
          {"lion_with_decay", Decayed<optim::Lion>(0.0), Decayed<optim::Lion>(0.2), true},
          {"lamb", Decayed<optim::Lamb>(0.0), Decayed<optim::Lamb>(0.2), true},
          {"adafactor", Decayed<optim::Adafactor>(0.0), Decayed<optim::Adafactor>(0.2), true},
          {"schedule_free", Decayed<optim::ScheduleFreeAdamW>(0.1),
           Decayed<optim::ScheduleFreeAdamW>(0.2)}};
}

class SetOptimizerTest : public ::testing::TestWithParam<Case> {};

INSTANTIATE_TEST_SUITE_P(Optimizers, SetOptimizerTest, ::testing::ValuesIn(Cases()),
                         [](const auto& info) { return info.param.name; });

// Steps 1 and 2 by `before`, 3 and 4 by `after`, to which the state moves by hand.
StatusOr<std::string> RunAfterRun(const Config& config, const Case& of,
                                  Communicator& communicator) {
  SmallRun first(config, of.before, communicator);
  ZG_RETURN_IF_ERROR(first.status());
  ZG_RETURN_IF_ERROR(first.StepUntil(2));
  ZG_ASSIGN_OR_RETURN(const NamedValues parameters, first.trainer().consolidate_parameters());
  ZG_ASSIGN_OR_RETURN(const OptimizerState state, first.trainer().consolidate_optimizer_state());
  SmallRun second(config, of.after, communicator);
  ZG_RETURN_IF_ERROR(second.status());
  ZG_RETURN_IF_ERROR(second.trainer().scatter_parameters(parameters));
  ZG_RETURN_IF_ERROR(second.trainer().scatter_optimizer_state(state));
  ZG_RETURN_IF_ERROR(second.StepUntil(4));
  ZG_ASSIGN_OR_RETURN(const std::string result, second.Result());
  return result;
}

// The same in one run; the losses of steps 3 and 4 alone.
StatusOr<std::string> ChangedRun(const Config& config, const Case& of, Communicator& communicator) {
  SmallRun run(config, of.before, communicator);
  ZG_RETURN_IF_ERROR(run.status());
  ZG_RETURN_IF_ERROR(run.StepUntil(2));
  const double compile_ms = run.trainer().program().compile_ms;  // each program has its own
  ZG_RETURN_IF_ERROR(run.trainer().set_optimizer(of.after));
  if (config.has_head) ZG_RETURN_IF_ERROR(run.trainer().set_optimizer(of.after, "head"));
  EXPECT_EQ(run.trainer().program().compile_ms != compile_ms, of.compiles);
  ZG_RETURN_IF_ERROR(run.StepUntil(4));
  ZG_ASSIGN_OR_RETURN(std::string result, run.Result());
  for (int i = 0; i < 2; ++i) result.erase(0, result.find(' ') + 1);
  return result;
}

TEST_P(SetOptimizerTest, NextStepsAreThoseOfTheNewHyperparameters) {
  Config config;
  const auto expected_in = [&](const Config& of) {
    return OnRanks(1, [&](Communicator& one) { return RunAfterRun(of, GetParam(), one); });
  };
  const std::string expected = expected_in(config);
  EXPECT_EQ(OnRanks(1, [&](Communicator& one) { return ChangedRun(config, GetParam(), one); }),
            expected);
  for (config.ranks = 2; config.ranks <= 3; ++config.ranks) {
    for (config.stage = 0; config.stage <= 3; ++config.stage) {
      SCOPED_TRACE(fmt::format("{} ranks, stage {}", config.ranks, config.stage));
      const auto changed = [&](Communicator& rank) { return ChangedRun(config, GetParam(), rank); };
      EXPECT_EQ(OnRanks(config.ranks, changed), expected);
    }
  }
}

TEST_P(SetOptimizerTest, InMixedPrecisionWithGroupsAndClipping) {
  Config config = {2, 3, DType::kBF16, 0.05, /*has_head=*/true};
  const std::string expected = OnRanks(
      2, [&](Communicator& communicator) { return RunAfterRun(config, GetParam(), communicator); });
  EXPECT_EQ(OnRanks(2, [&](Communicator& rank) { return ChangedRun(config, GetParam(), rank); }),
            expected);
}

// A momentum that rises from step to step.
TEST(SetOptimizer, MayBeCalledBeforeEveryStep) {
  const std::string result = OnRanks(2, [](Communicator& communicator) -> StatusOr<std::string> {
    SmallRun run({2, 2}, OfMuon(0.85), communicator);
    ZG_RETURN_IF_ERROR(run.status());
    const double compile_ms = run.trainer().program().compile_ms;
    for (int step = 1; step <= 5; ++step) {
      ZG_RETURN_IF_ERROR(run.trainer().set_optimizer(OfMuon(0.85 + 0.02 * step)));
      ZG_RETURN_IF_ERROR(run.StepUntil(step));
    }
    return std::string(compile_ms == run.trainer().program().compile_ms ? "same program"
                                                                        : "compiled again");
  });
  EXPECT_EQ(result, "same program");
}

std::string ErrorOf(int ranks, const Config& config,
                    const std::function<Status(Trainer&, Communicator&)>& change) {
  return OnRanks(ranks, [&](Communicator& communicator) -> StatusOr<std::string> {
    SmallRun run(config, Adamw(0.01, 0.9, 0.0), communicator);
    ZG_RETURN_IF_ERROR(run.status());
    ZG_RETURN_IF_ERROR(run.StepUntil(1));
    const Status status = change(run.trainer(), communicator);
    ZG_RETURN_IF_ERROR(run.StepUntil(2));  // as if nothing had been asked
    return status.message();
  });
}

TEST(SetOptimizer, RefusesWhatHasOtherStates) {
  EXPECT_EQ(ErrorOf(1, {},
                    [](Trainer& trainer, Communicator&) {
                      return trainer.set_optimizer(Momentum(0.9, false));
                    }),
            "graph hyperparameters, optimizer: got sgd_momentum_update lr=0.05 momentum=0.9 "
            "nesterov=false weight_decay=0.0 (states: momentum_buffer), expected other "
            "hyperparameters of adam_update beta1=0.9 beta2=0.999 decoupled=true epsilon=1e-08 "
            "lr=0.01 weight_decay=0.0 (states: exp_avg, exp_avg_sq), with the same states; "
            "parameters get another optimizer by add_parameter_group()");
}

TEST(SetOptimizer, RefusesWhatIsNotThereOrNotTheSameOnAllRanks) {
  EXPECT_THAT(ErrorOf(1, {1, 0, DType::kF32, 0.0, true},
                      [](Trainer& trainer, Communicator&) {
                        return trainer.set_optimizer(Adamw(0.01, 0.9, 0.1), "tail");
                      }),
              HasSubstr("optimizer of 'tail': there is no parameter group of this name; there are: "
                        "head"));
  EXPECT_THAT(ErrorOf(1, {},
                      [](Trainer& trainer, Communicator&) {
                        return trainer.set_optimizer(Adamw(0.01, 1.5, 0.1));
                      }),
              HasSubstr("beta1"));
  EXPECT_THAT(
      ErrorOf(2, {2},
              [](Trainer& trainer, Communicator& communicator) {
                return trainer.set_optimizer(Adamw(0.01, 0.9, 0.1 * (1 + communicator.rank())));
              }),
      HasSubstr("what is trained changes by"));
}

// A checkpoint has the hyperparameters of its last step, and resume() compares them.
TEST(SetOptimizer, IsCalledBeforeResuming) {
  const std::string directory =
      (std::filesystem::path(::testing::TempDir()) / "set_optimizer").string();
  const optim::Optimizer before = Adamw(0.01, 0.9, 0.0);
  const optim::Optimizer after = Adamw(0.01, 0.9, 0.2);
  const std::string expected = OnRanks(2, [&](Communicator& communicator) -> StatusOr<std::string> {
    SmallRun run({2, 1}, before, communicator);
    ZG_RETURN_IF_ERROR(run.status());
    ZG_RETURN_IF_ERROR(run.StepUntil(1));
    ZG_RETURN_IF_ERROR(run.trainer().set_optimizer(after));
    ZG_RETURN_IF_ERROR(run.StepUntil(2));
    ZG_RETURN_IF_ERROR(run.trainer().save(directory));
    ZG_RETURN_IF_ERROR(run.StepUntil(4));
    ZG_ASSIGN_OR_RETURN(std::string result, run.Result());
    for (int i = 0; i < 2; ++i) result.erase(0, result.find(' ') + 1);
    return result;
  });
  const auto resumed = [&](bool is_set) {
    return OnRanks(3, [&](Communicator& communicator) -> StatusOr<std::string> {
      SmallRun run({3, 3}, before, communicator);
      ZG_RETURN_IF_ERROR(run.status());
      if (is_set) ZG_RETURN_IF_ERROR(run.trainer().set_optimizer(after));
      ZG_RETURN_IF_ERROR(run.trainer().resume(directory));
      ZG_RETURN_IF_ERROR(run.StepUntil(4));
      return run.Result();
    });
  };
  EXPECT_EQ(resumed(true), expected);
  EXPECT_THAT(resumed(false), HasSubstr("weight_decay=0.2"));
}

}  // namespace
}  // namespace zg
