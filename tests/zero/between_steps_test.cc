// What a trainer refuses within a step, before a step, and of options and states that cannot be.
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "framework/comm/in_process.h"
#include "framework/nn/nn.h"
#include "framework/ops/register_all_ops.h"
#include "tests/zero/small_trainer.h"
#include "zero/zerograph/make_trainer.h"

namespace zg::testing {
namespace {

struct Call {
  std::string name;
  std::function<Status()> make;
};

std::vector<Call> CallsThatChange(Trainer& trainer, const std::string& directory,
                                  const NamedValues& parameters, const OptimizerState& state) {
  const std::string file = directory + "/p.safetensors";
  return {
      {"step", [&] { return SmallStep(trainer); }},
      {"eval", [&] { return trainer.eval("validate", {}); }},
      {"save", [=, &trainer] { return trainer.save(directory); }},
      {"prepare_saving", [=, &trainer] { return trainer.prepare_saving(directory); }},
      {"start_saving", [=, &trainer] { return trainer.start_saving(directory); }},
      {"continue_saving", [&] { return trainer.continue_saving().status(); }},
      {"finish_saving", [&] { return trainer.finish_saving(); }},
      {"reserve_for_saving", [&] { return trainer.reserve_for_saving(); }},
      {"resume", [=, &trainer] { return trainer.resume(directory); }},
      {"load_parameters", [=, &trainer] { return trainer.load_parameters(file); }},
      {"save_parameters", [=, &trainer] { return trainer.save_parameters(file); }},
      {"scatter_parameters", [&] { return trainer.scatter_parameters(parameters); }},
      {"scatter_optimizer_state", [&] { return trainer.scatter_optimizer_state(state); }},
      {"load_optimizer_state", [&] { return trainer.load_optimizer_state(state); }},
      {"freeze", [&] { return trainer.freeze("**.bias"); }},
      {"unfreeze", [&] { return trainer.unfreeze("**.bias"); }},
      {"add_parameter_group",
       [&] {
         return trainer.add_parameter_group({"b", "**.bias"});
       }},
      {"set_optimizer",
       [&] {
         return trainer.set_optimizer(optim::Sgd{0.2, 0.9});
       }},
      {"set_size", [&] { return trainer.set_size(0); }},
      {"set_phase", [&] { return trainer.set_phase(""); }},
  };
}

TEST(Trainer, RefusesChangesWithinAStepAndKeepsItsBits) {
  const std::string directory = ::testing::TempDir() + "/within_a_step";
  std::filesystem::remove_all(directory);
  const auto train = [&](bool tries) {
    std::string digest;
    const auto statuses =
        OnSmallTrainers({/*ranks=*/2, /*stage=*/2}, [&](Trainer& trainer) -> Status {
          ZG_RETURN_IF_ERROR(SmallStep(trainer));
          ZG_RETURN_IF_ERROR(trainer.save(directory));
          ZG_ASSIGN_OR_RETURN(const NamedValues parameters, trainer.consolidate_parameters());
          ZG_ASSIGN_OR_RETURN(const OptimizerState state, trainer.consolidate_optimizer_state());
          const std::vector<float> x(4 * 12, 0.5f);
          const std::vector<int64_t> y = {0, 1, 2, 1};
          ZG_RETURN_IF_ERROR(trainer
                                 .step([&](int64_t) {
                                   for (const Call& call :
                                        CallsThatChange(trainer, directory, parameters, state)) {
                                     if (!tries) break;
                                     EXPECT_EQ(call.make().message(),
                                               call.name +
                                                   ": got a call within step 2; call it "
                                                   "between steps");
                                   }
                                   return trainer.feed({{"x", x}, {"y", y}});
                                 })
                                 .status());
          ZG_RETURN_IF_ERROR(SmallStep(trainer));
          ZG_ASSIGN_OR_RETURN(const TensorDigest all, trainer.digest_parameters());
          if (trainer.executor().communicator().rank() == 0) digest = all.sha256;
          return Status::Ok();
        });
    for (const Status& status : statuses) EXPECT_TRUE(status.ok()) << status.message();
    return digest;
  };
  EXPECT_EQ(train(true), train(false));
}

TEST(Trainer, HasNeitherResultsNorInputsBeforeAStep) {
  const Status status = OnSmallTrainer({}, [&](Trainer& trainer) -> Status {
    const std::string none =
        "graph small: the result \"loss\" of training is not there: no step has run yet; take one "
        "first";
    EXPECT_EQ(trainer.step_result("loss").status().message(), none);
    EXPECT_EQ(trainer.local_step_result("loss").status().message(), none);
    const std::vector<float> x(4 * 12);
    EXPECT_EQ(trainer.feed({{"x", x}}).message(),
              "feed: no step is being taken; call it from the function given to step");
    ZG_RETURN_IF_ERROR(SmallStep(trainer));
    EXPECT_TRUE(trainer.step_result("loss").ok());
    ZG_RETURN_IF_ERROR(trainer.freeze("**.bias"));
    EXPECT_EQ(trainer.step_result("loss").status().message(), none);
    return Status::Ok();
  });
  EXPECT_TRUE(status.ok()) << status.message();
}

TEST(Trainer, RefusesStepsAndPathsThatCannotBe) {
  const Status status = OnSmallTrainer({}, [&](Trainer& trainer) -> Status {
    ZG_RETURN_IF_ERROR(SmallStep(trainer));
    ZG_ASSIGN_OR_RETURN(OptimizerState state, trainer.consolidate_optimizer_state());
    const OptimizerState good = state;
    for (const int64_t step : {int64_t{-5}, std::numeric_limits<int64_t>::max()}) {
      state.step = step;
      const std::string error =
          "optimizer state: got step " + std::to_string(step) + ", expected 0 to 9007199254740992";
      EXPECT_EQ(trainer.scatter_optimizer_state(state).message(), error);
      EXPECT_EQ(trainer.load_optimizer_state(state).message(), error);
    }
    state = good;
    state.skipped_steps[""] = 2;
    EXPECT_EQ(trainer.scatter_optimizer_state(state).message(),
              "optimizer state: got 2 steps that skipped the group '', expected 0 to its 1 steps");
    EXPECT_EQ(trainer.steps_done(), 1);
    EXPECT_TRUE(trainer.scatter_optimizer_state(good).ok());
    const std::string nowhere = "saving: got the directory \"\", expected the path of one";
    EXPECT_EQ(trainer.save("").message(), nowhere);
    EXPECT_EQ(trainer.start_saving("").message(), nowhere);
    EXPECT_FALSE(trainer.save_parameters("").ok());
    EXPECT_FALSE(trainer.load_parameters("").ok());
    EXPECT_FALSE(trainer.resume("").ok());
    const std::string file = ::testing::TempDir() + "/unnamed.safetensors";
    const Status unnamed =
        trainer.save_parameters(file, [](const std::string&) { return std::string(); });
    EXPECT_NE(unnamed.message().find("\"\", expected a name"), std::string::npos);
    return SmallStep(trainer);
  });
  EXPECT_TRUE(status.ok()) << status.message();
}

// The error of a trainer of one rank for these options and settings.
std::string MakeError(const TrainerOptions& options, const std::function<void(Graph&)>& set) {
  RegisterAllOps();
  InProcessGroup group(1);
  nn::Linear layer(nullptr, "layer", 3, 2);
  Graph graph("g");
  graph.train(optim::Sgd{}, [&](Inputs& in) { return mean(layer(in.f32("x", {2, 3}))); });
  set(graph);
  return make_trainer(graph, group.communicator(0), options).status().message();
}

TEST(Trainer, RefusesOptionsThatCannotBe) {
  const auto of_options = [](const std::function<void(TrainerOptions&)>& set) {
    TrainerOptions options;
    set(options);
    return MakeError(options, [](Graph&) {});
  };
  EXPECT_EQ(of_options([](TrainerOptions&) {}), "");
  for (const int threads : {-1, 0, 1000000}) {
    EXPECT_EQ(of_options([&](TrainerOptions& options) { options.threads = threads; }),
              "threads: got " + std::to_string(threads) + ", expected 1 to 1024");
  }
  EXPECT_EQ(of_options([](TrainerOptions& options) { options.trace_steps = -1; }),
            "trace_steps: got -1, expected 0 to 1000");
  EXPECT_EQ(of_options([](TrainerOptions& options) { options.trace_steps = int64_t{1} << 60; }),
            "trace_steps: got 1152921504606846976, expected 0 to 1000");
  EXPECT_EQ(of_options([](TrainerOptions& options) { options.gradient_histograms_every = -1; }),
            "gradient_histograms_every: got -1, expected a number of steps, or 0");
}

TEST(Trainer, RefusesMeshesAndPlacementsThatCannotBe) {
  const auto of_mesh = [](std::vector<MeshAxis> mesh) {
    return MakeError({}, [&](Graph& graph) { graph.config().mesh = mesh; });
  };
  EXPECT_EQ(of_mesh({{"data", 0}}),
            "graph g: mesh: got the axis 'data=0', expected at least 1 rank along it");
  EXPECT_EQ(of_mesh({{"a", -1}, {"b", -1}}),
            "graph g: mesh: got the axis 'a=-1', expected at least 1 rank along it");
  for (const Sbp sbp : {Sbp::P(), Sbp::S(-1)}) {
    const std::string error = MakeError({}, [&](Graph& graph) {
      graph.config().mesh = {{"data", 1}, {"tensor", 1}};
      graph.config().place("layer", "tensor", sbp);
    });
    EXPECT_EQ(error, "place-parameters: placement rule 'layer tensor=" + sbp.ToString() +
                         "': expected the placement B, S(dim) or S(dim:groups), dim from 0 on");
  }
}

}  // namespace
}  // namespace zg::testing
