// The life of a training: its end before the job's steps, what a loop must not do, and runs that are
// resumed after changes between steps.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "framework/io/checkpoint_names.h"
#include "framework/io/checkpoint_store.h"
#include "zerograph/zerograph.h"

namespace zg {
namespace {

struct Model : nn::Module {
  nn::Linear hidden{this, "hidden", 3, 4};
  nn::Linear last{this, "last", 4, 1};
  Var forward(Var x) override { return last(tanh(hidden(x))); }
};

struct Flags {
  explicit Flags(std::vector<std::string> of_program) : texts(std::move(of_program)) {
    texts.insert(texts.begin(), "training_test");
    for (std::string& text : texts) pointers.push_back(text.data());
  }
  Job StartJob() { return Job::start(static_cast<int>(pointers.size()), pointers.data()); }

  std::vector<std::string> texts;
  std::vector<char*> pointers;
};

// Trains until the job's steps are done or `after_step` returns false; returns the losses.
using AfterStep = std::function<bool(Training& training)>;
std::vector<float> Train(Job& job, const AfterStep& after_step, const TrainOptions& options = {},
                         const std::string& name = "life") {
  Model model;
  Graph graph(name);
  graph.train(optim::AdamW{0.05}, [&](Inputs& in) {
    return mse_loss(model(in.f32("x", {2, 3})), in.f32("y", {2, 1}));
  });
  graph.freeze("hidden.*");
  std::vector<float> losses;
  Training training = train(job, graph, options);
  while (training.next()) {
    std::vector<float> x(6), y(2, 0.5f);
    for (int64_t i = 0; i < 6; ++i)
      x[i] = 0.1f * static_cast<float>((training.step_number() + i) % 5);
    losses.push_back(training.step({{"x", x}, {"y", y}}));
    if (!after_step(training)) break;
  }
  return losses;
}

std::vector<float> Train(const std::vector<std::string>& flags, const AfterStep& after_step,
                         const TrainOptions& options = {}) {
  Flags of_job(flags);
  Job job = of_job.StartJob();
  return Train(job, after_step, options);
}

std::string FreshDirectory(const std::string& name) {
  const std::string path = ::testing::TempDir() + "/" + name;
  std::filesystem::remove_all(path);
  return path;
}

using Json = nlohmann::json;

Json ReadJson(const std::string& path) {
  std::ifstream file(path);
  return Json::parse(file);
}

bool GoOn(Training&) { return true; }

TEST(Training, StopsEarlyAsAtItsEnd) {
  const std::vector<float> whole = Train({"--steps", "8"}, GoOn);
  for (const int last : {4, 6}) {  // step 4 is saved anyway
    for (const char* const async : {"false", "true"}) {
      const std::string directory = FreshDirectory(fmt::format("stop{}", last));
      const std::string report = directory + "-report.json";
      std::filesystem::remove(report);
      const std::vector<float> begun =
          Train({"--steps", "8", "--save", directory, "--save-every", "4", "--report", report,
                 fmt::format("--save-async={}", async)},
                [&](Training& training) {
                  if (training.trainer().steps_done() < last) return true;
                  training.stop();
                  EXPECT_FALSE(training.next());
                  EXPECT_EQ(training.report().steps.size(), last);
                  return false;
                });
      EXPECT_EQ(begun, std::vector<float>(whole.begin(), whole.begin() + last));
      EXPECT_TRUE(std::filesystem::exists(report));
      EXPECT_EQ(LatestCheckpoint(directory), StepDirectoryName(last));
      EXPECT_EQ(Train({"--steps", "8", "--resume", directory}, GoOn),
                std::vector<float>(whole.begin() + last, whole.end()));
    }
  }
}

TEST(Training, ALoopThatIsLeftSaysWhatIsMissing) {
  const auto leave = [](const std::vector<std::string>& flags) {
    Train(flags, [](Training& training) { return training.step_number() < 3; });
    std::exit(0);
  };
  EXPECT_EXIT(leave({"--steps", "8"}), ::testing::ExitedWithCode(0),
              "training is left after step 3 of 8: there is no summary; call Training::stop");
  EXPECT_EXIT(leave({"--steps", "8", "--save", FreshDirectory("left")}),
              ::testing::ExitedWithCode(0),
              "neither the last checkpoint nor the report is written");
}

TEST(Training, TakesEveryStepThatNextAnnounces) {
  EXPECT_EXIT(Train({"--steps", "8"},
                    [](Training& training) { return training.next() && training.next(); }),
              ::testing::ExitedWithCode(1), "next.. was called again before step 2 was taken");
}

TEST(Training, FilesOfTheFlagsAreOfTheFirstOne) {
  {
    Flags flags({"--steps", "2"});
    Job job = flags.StartJob();
    EXPECT_EQ(Train(job, GoOn), Train(job, GoOn, {}, "second"));
  }
  const std::string first = FreshDirectory("first");
  Train({"--steps", "2", "--save", first}, GoOn);
  EXPECT_EXIT(
      {
        Flags flags({"--steps", "2", "--resume", first});
        Job job = flags.StartJob();
        Train(job, GoOn, {}, "second");
      },
      ::testing::ExitedWithCode(2), "model: got .second., expected .life.");
  EXPECT_EXIT(
      {
        Flags flags({"--steps", "2", "--save", FreshDirectory("two")});
        Job job = flags.StartJob();
        Train(job, GoOn);
        Train(job, GoOn, {}, "second");
      },
      ::testing::ExitedWithCode(1),
      "graph second: got --save .*two, which belong to the first training of this job, of graph life");
  EXPECT_EXIT(
      {
        Flags flags({"--steps", "4", "--resume", first});
        Job job = flags.StartJob();
        Train(job, GoOn);
        Train(job, GoOn);
      },
      ::testing::ExitedWithCode(1), "graph life: got --resume .*first, which belong to the first");
}

TEST(Training, KeepsNotesOfTheProgram) {
  const std::string directory = FreshDirectory("notes");
  Train({"--steps", "4", "--save", directory, "--save-every", "2", "--keep", "2"},
        [](Training& training) {
          const std::string step = fmt::to_string(training.trainer().steps_done());
          training.trainer().set_note("best of \"all\"", "0.25 at " + step);
          return true;
        });
  Train({"--steps", "3", "--resume", directory + "/" + StepDirectoryName(2)},
        [](Training& training) {
          EXPECT_EQ(training.trainer().note("best of \"all\""), "0.25 at 2");
          EXPECT_EQ(training.trainer().note("other"), std::nullopt);
          return true;
        });
}

// Unfreezes a group after step 3 and lowers its momentum after step 5.
TEST(Training, IsResumedAfterChangesBetweenSteps) {
  const optim::ParameterGroup group = {"below", "hidden.*"};
  optim::AdamW lower;
  lower.lr = 0.05;
  lower.beta1 = 0.5;
  const AfterStep change = [&](Training& training) {
    Trainer& trainer = training.trainer();
    Status status;
    if (trainer.steps_done() == 3) status = trainer.add_parameter_group(group);
    if (trainer.steps_done() == 5) status = trainer.set_optimizer(lower);
    EXPECT_TRUE(status.ok()) << status.message();
    return true;
  };
  const std::string directory = FreshDirectory("changes");
  const std::vector<float> whole =
      Train({"--steps", "8", "--save", directory, "--save-every", "2", "--keep", "10"}, change);
  TrainOptions options;
  options.groups = {group};
  options.before_resume = [&](Trainer& trainer, int64_t step) {
    return step > 5 ? trainer.set_optimizer(lower) : Status::Ok();
  };
  for (const int step : {2, 4, 6}) {
    EXPECT_EQ(Train({"--steps", "8", "--resume", directory + "/" + StepDirectoryName(step)}, change,
                    options),
              std::vector<float>(whole.begin() + step, whole.end()))
        << step;
  }
}

TEST(Training, SaysThatItSavesBesideAnotherRun) {
  const std::string directory = FreshDirectory("other");
  Train({"--steps", "2", "--save", directory}, GoOn);
  const auto begin_anew = [&](const std::vector<std::string>& more) {
    std::vector<std::string> flags = {"--steps", "3", "--save", directory, "--keep", "1"};
    flags.insert(flags.end(), more.begin(), more.end());
    Train(flags, GoOn);
    std::exit(0);
  };
  EXPECT_EXIT(
      begin_anew({}), ::testing::ExitedWithCode(0),
      "step-00000002 of another run, which this one does not resume; it replaces checkpoints "
      "of the same steps, and --keep removes older ones");
  EXPECT_EXIT(begin_anew({"--resume", directory, "--log-level", "warn"}),
              ::testing::ExitedWithCode(0), "^$");
}

// Nobody waits for a rank that has left.
TEST(Training, ARankThatLeavesAloneEndsTheJob) {
  const auto leave = [] {
    Flags flags({"--steps", "8", "--ranks-in-process", "2", "--timeout", "100"});
    Job job = flags.StartJob();
    job.run([](Job& of_rank) {
      Train(of_rank, [&](Training& training) {
        return of_rank.rank() == 0 || training.trainer().steps_done() < 3;
      });
      return Status::Ok();
    });
  };
  EXPECT_EXIT(leave(), ::testing::ExitedWithCode(1), "leave the training");
}

// Each phase is measured by itself, and all of them are in one trace.
TEST(Training, MeasuresEachPhase) {
  const std::string directory = FreshDirectory("phases");
  std::filesystem::create_directory(directory);
  Flags flags({"--steps", "5", "--profile", "--report", directory + "/report.json", "--trace",
               directory + "/trace.json", "--trace-steps", "3"});
  Job job = flags.StartJob();
  Model model;
  Graph graph("phases");
  const auto of = [&](float target) {
    return [&, target](Inputs& in) { return mean(square(model(in.f32("x", {2, 3})) - target)); };
  };
  graph.train(optim::AdamW{0.05}, {{"up", of(1)}, {"down", of(-1)}});
  Training training = train(job, graph);
  while (training.next()) {
    const std::string phase = training.step_number() % 3 == 0 ? "down" : "up";
    ASSERT_TRUE(training.trainer().set_phase(phase).ok());
    training.step({{"x", std::vector<float>(6, 0.5f)}});
  }
  const Json report = ReadJson(directory + "/report.json");
  std::map<std::string, int> steps;
  for (const Json& profile : report["profile"]) steps[profile["phase"]] = profile["steps"];
  EXPECT_EQ(steps, (std::map<std::string, int>{{"up", 3}, {"down", 1}}));
  std::set<std::string> traced;
  const Json trace = ReadJson(directory + "/trace.json");
  for (const Json& event : trace["traceEvents"]) {
    if (event.value("cat", "") == "step") traced.insert(event["name"]);
  }
  traced.erase("setting inputs");
  EXPECT_EQ(traced, (std::set<std::string>{"step 1, phase 'up'", "step 2, phase 'up'",
                                           "step 3, phase 'down'"}));
}

}  // namespace
}  // namespace zg
