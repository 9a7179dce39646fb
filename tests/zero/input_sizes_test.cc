// A graph whose inputs have several sizes: each step runs at one of them, with the same bits as a
// program of that size alone, at any stage and number of ranks.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tests/testing/as_planned.h"
#include "tests/testing/on_device.h"
#include "tests/testing/results_on_ranks.h"
#include "tests/zero/sized_run.h"
#include "tests/zero/trainer_run.h"

namespace zg::testing {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kSteps = 7;

// What happens to a run before a step.
using Between = std::function<Status(std::optional<SizedRun>& run, Communicator& communicator)>;

// The losses of a run, its evaluations between steps and its final digests, on rank 0.
std::string RunOf(int ranks, const Config& config, const Between& between = nullptr) {
  return ResultsOnRanks<std::string>(ranks, [&](Communicator& host, std::string* result) -> Status {
    return OnDevice(config.on_device, host, [&](Communicator& communicator) -> Status {
      std::optional<SizedRun> run(std::in_place, config, communicator);
      ZG_RETURN_IF_ERROR(run->status());
      const std::vector<int64_t> words = {1, 2, 3, 4};
      for (int64_t step = 0; step < kSteps; ++step) {
        if (between != nullptr) ZG_RETURN_IF_ERROR(between(run, communicator));
        ZG_ASSIGN_OR_RETURN(const float loss, run->Step());
        *result += fmt::format("{} ", loss);
        if (step % 3 != 1) continue;
        ZG_RETURN_IF_ERROR(run->trainer().eval("first", {{"words", words}}));
        ZG_ASSIGN_OR_RETURN(const std::vector<float> logits, run->trainer().local_result("first"));
        *result += fmt::format("({}) ", logits[0]);
      }
      ZG_ASSIGN_OR_RETURN(const std::string digests, DigestsOf(run->trainer()));
      *result += digests;
      return Status::Ok();
    });
  })[0];
}

TEST(InputSizes, HaveTheSameBitsAtAnyStageOnAnyNumberOfRanks) {
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) {
    SCOPED_TRACE(DTypeName(dtype));
    Config config;
    config.dtype = dtype;
    ExpectSameBits(RunOf(1, config), config, /*overlap_bytes=*/1024,
                   [](int ranks, const Config& other) { return RunOf(ranks, other); });
  }
}

TEST(InputSizes, HaveTheSameBitsWithEarlyUpdates) {
  Config config;
  config.micro_batches = 2;
  const std::string expected = RunOf(1, config);
  config.update_early = true;
  for (const int stage : {0, 1, 2, 3}) {
    SCOPED_TRACE(stage);
    config.stage = stage;
    config.overlap_bytes = stage % 2 == 0 ? 0 : 1024;
    EXPECT_EQ(RunOf(2, config), expected);
  }
}

TEST(InputSizes, HaveTheSameBitsOnADevice) {
  const std::string expected = RunOf(1, {});
  Config config;
  config.on_device = true;
  for (const int ranks : {1, 2}) {
    config.stage = ranks;
    EXPECT_EQ(RunOf(ranks, config), expected) << ranks;
  }
}

// Each size has a recording of its own, on one rank.
TEST(InputSizes, HaveTheSameBitsRecorded) {
  Config config;
  config.micro_batches = 1;
  const std::string expected = RunOf(1, config);
  config.on_device = config.record = true;
  EXPECT_EQ(RunOf(1, config), expected);
}

TEST(InputSizes, HaveTheSameBitsOnThreads) {
  const std::string expected = RunOf(1, {});
  Config config = {2};
  config.threads = 2;
  EXPECT_EQ(RunOf(2, config), expected);
}

// Programs of one size each that hand over parameters, buffers and state.
TEST(InputSizes, TrainAsAProgramOfEachSizeDoes) {
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    SCOPED_TRACE(DTypeName(dtype));
    ResultsOnRanks<int>(2, [&](Communicator& communicator, int*) -> Status {
      Config config = {2, dtype};
      std::vector<float> losses;
      std::string digests;
      {
        SizedRun run(config, communicator);
        ZG_RETURN_IF_ERROR(run.status());
        for (int64_t step = 0; step < kSteps; ++step) {
          ZG_ASSIGN_OR_RETURN(losses.emplace_back(), run.Step());
        }
        ZG_ASSIGN_OR_RETURN(digests, DigestsOf(run.trainer()));
      }
      NamedValues parameters;
      OptimizerState state;
      for (int64_t step = 0; step < kSteps; ++step) {
        config.sizes = {SizedRun::SizeOf(step)};
        SizedRun run(config, communicator);
        ZG_RETURN_IF_ERROR(run.status());
        Trainer& trainer = run.trainer();
        if (step > 0) {
          ZG_RETURN_IF_ERROR(trainer.scatter_parameters(parameters));
          ZG_RETURN_IF_ERROR(trainer.scatter_optimizer_state(state));
        }
        ZG_ASSIGN_OR_RETURN(const float loss, run.Step());
        EXPECT_EQ(loss, losses[step]) << step;
        ZG_ASSIGN_OR_RETURN(parameters, trainer.consolidate_parameters());
        ZG_ASSIGN_OR_RETURN(state, trainer.consolidate_optimizer_state());
        if (step + 1 < kSteps) continue;
        ZG_ASSIGN_OR_RETURN(const std::string alone, DigestsOf(trainer));
        EXPECT_EQ(alone, digests);
      }
      return Status::Ok();
    });
  }
}

// What a run may do between steps leaves it the same bits on any number of ranks.
TEST(InputSizes, HaveTheSameBitsAfterChanges) {
  const std::filesystem::path directory =
      std::filesystem::path(::testing::TempDir()) / "changed_sizes";
  Config config;
  const Between change = [&](std::optional<SizedRun>& run, Communicator& communicator) -> Status {
    Trainer& trainer = run->trainer();
    switch (trainer.steps_done()) {
      case 1:
        return trainer.freeze("embedding.**");
      case 2:
        return trainer.set_optimizer(optim::AdamW{0.01});
      case 3:
        return trainer.add_parameter_group({"slow", "output.**", optim::Adam{0.005}});
      case 4:
        ZG_RETURN_IF_ERROR(trainer.save(directory));
        run.emplace(config, communicator);
        ZG_RETURN_IF_ERROR(run->status());
        ZG_RETURN_IF_ERROR(run->trainer().set_optimizer(optim::AdamW{0.01}));
        return run->trainer().resume(directory, {{"slow", "output.**", optim::Adam{0.005}}});
      case 5:
        return trainer.unfreeze("embedding.**");
      default:
        return Status::Ok();
    }
  };
  std::filesystem::remove_all(directory);
  const std::string expected = RunOf(1, config, change);
  ASSERT_FALSE(expected.empty());
  EXPECT_NE(expected, RunOf(1, config));
  for (const int stage : {0, 2, 3}) {
    for (const int64_t overlap_bytes : {0, 1024}) {
      SCOPED_TRACE(fmt::format("stage {}, overlap {}", stage, overlap_bytes));
      std::filesystem::remove_all(directory);
      config.stage = stage;
      config.overlap_bytes = overlap_bytes;
      EXPECT_EQ(RunOf(2, config, change), expected);
    }
  }
}

TEST(InputSizes, StepGroupsAtAnySize) {
  std::vector<std::string> digests;
  for (const int ranks : {1, 3}) {
    digests.push_back(ResultsOnRanks<std::string>(
        ranks, [&](Communicator& communicator, std::string* result) -> Status {
          Config config = {ranks};
          config.overlap_bytes = ranks == 1 ? 0 : 1024;
          SizedRun run(config, communicator);
          ZG_RETURN_IF_ERROR(run.status());
          Trainer& trainer = run.trainer();
          ZG_RETURN_IF_ERROR(trainer.add_parameter_group({"head", "output.**", optim::Adam{0.05}}));
          for (int64_t step = 0; step < kSteps; ++step) {
            ZG_RETURN_IF_ERROR(run.Step({step % 2 == 0 ? "head" : ""}).status());
          }
          ZG_ASSIGN_OR_RETURN(*result, DigestsOf(trainer));
          return Status::Ok();
        })[0]);
  }
  EXPECT_EQ(digests[0], digests[1]);
}

TEST(InputSizes, EachNeedsWhatIsPlanned) {
  for (const int stage : {0, 3}) {
    ResultsOnRanks<int>(2, [&](Communicator& communicator, int*) -> Status {
      SizedRun run({stage}, communicator);
      ZG_RETURN_IF_ERROR(run.status());
      for (int64_t step = 0; step < kSteps; ++step) ZG_RETURN_IF_ERROR(run.Step().status());
      const std::vector<int64_t> words = {1, 2, 3, 4};
      ZG_RETURN_IF_ERROR(run.trainer().eval("first", {{"words", words}}));
      const std::vector<const Executor*> executors = run.trainer().executors();
      EXPECT_EQ(executors.size(), kSizes.size());
      for (const Executor* executor : executors) {
        EXPECT_EQ(executor->meter().peak_bytes(), executor->plan().arena_bytes);
      }
      ExpectMemoryAsPlanned(run.trainer().executor());
      const Program& largest = run.trainer().program();
      EXPECT_EQ(largest.variant.size, kLongest);
      int64_t last_bytes = 0;
      for (const Program& smaller : largest.other_variants) {
        EXPECT_LT(last_bytes, smaller.memory.arena_bytes);
        last_bytes = smaller.memory.arena_bytes;
        EXPECT_LT(smaller.flops, largest.flops);
      }
      EXPECT_LT(last_bytes, largest.memory.arena_bytes);
      ZG_ASSIGN_OR_RETURN(const TrafficCounters traffic, run.trainer().step_traffic());
      ExpectTraffic(largest.traffic, kSteps, traffic);  // whatever the size: of parameters only
      return Status::Ok();
    });
  }
}

TEST(InputSizes, EachHasAProfileOfItsSteps) {
  ResultsOnRanks<int>(1, [&](Communicator& communicator, int*) -> Status {
    Config config;
    config.profile = true;
    SizedRun run(config, communicator);
    ZG_RETURN_IF_ERROR(run.status());
    std::map<int64_t, int64_t> steps;
    for (int64_t step = 0; step < kSteps; ++step) {
      ZG_RETURN_IF_ERROR(run.Step().status());
      ++steps[run.trainer().size()];
    }
    for (const Executor* executor : run.trainer().executors()) {
      const Profile profile = executor->profile().value();
      EXPECT_EQ(profile.steps, steps[profile.variant.size] - 1) << "without the first one";
    }
    return Status::Ok();
  });
}

TEST(InputSizes, ResultsAreThoseOfTheLastStep) {
  ResultsOnRanks<int>(1, [&](Communicator& communicator, int*) -> Status {
    Config config;
    config.micro_batches = 1;
    SizedRun run(config, communicator);
    ZG_RETURN_IF_ERROR(run.status());
    Trainer& trainer = run.trainer();
    EXPECT_EQ(trainer.size(), kLongest);
    const int64_t of_row = kSamples * kWords;
    ZG_RETURN_IF_ERROR(run.Step().status());
    ZG_ASSIGN_OR_RETURN(const auto first, trainer.step_result("logits"));
    EXPECT_EQ(first.size(), SizedRun::SizeOf(0) * of_row);
    ZG_RETURN_IF_ERROR(trainer.set_size(SizedRun::SizeOf(1)));
    EXPECT_EQ(trainer.size(), SizedRun::SizeOf(1));
    ZG_ASSIGN_OR_RETURN(const auto still, trainer.local_step_result("logits"));
    EXPECT_EQ(still, first);
    ZG_RETURN_IF_ERROR(run.Step().status());
    ZG_ASSIGN_OR_RETURN(const auto second, trainer.local_step_result("logits"));
    EXPECT_NE(SizedRun::SizeOf(0), SizedRun::SizeOf(1));
    EXPECT_EQ(second.size(), SizedRun::SizeOf(1) * of_row);
    // A step at another size than the largest overwrites the results of evals, too.
    const std::vector<int64_t> words = {1, 2, 3, 4};
    ZG_RETURN_IF_ERROR(trainer.eval("first", {{"words", words}}));
    ZG_RETURN_IF_ERROR(run.Step().status());
    EXPECT_THAT(trainer.local_result("first").status().message(), HasSubstr("a step ran last"));
    return Status::Ok();
  });
}

constexpr auto& ErrorOf = ErrorOfRun<SizedRun, Config>;

TEST(InputSizes, Errors) {
  EXPECT_EQ(ErrorOf(1, {}, [](SizedRun& run, int) { return run.trainer().set_size(4); }),
            "set_size: got size 4, but the graph has size 7, size 3, size 5");
  Config config;
  config.sizes = {5};
  EXPECT_EQ(ErrorOf(1, config, [](SizedRun& run, int) { return run.trainer().set_size(5); }),
            "set_size: got size 5, but the graph has one training function; give its sizes to "
            "Graph::train");
  EXPECT_THAT(
      ErrorOf(2, {},
              [](SizedRun& run, int rank) -> Status {
                ZG_RETURN_IF_ERROR(run.trainer().set_size(rank == 0 ? 3 : 5));
                const auto feed = [&](int64_t) { return Status::Ok(); };
                return run.trainer().step(feed).status();
              }),
      HasSubstr("step 1: the step updates the groups all at size 5 on rank 1, but updates the "
                "groups all at size 3 on rank 0"));
  EXPECT_THAT(
      ErrorOf(1, {},
              [](SizedRun& run, int) -> Status {
                ZG_RETURN_IF_ERROR(run.trainer().set_size(3));
                const auto feed = [&](int64_t) { return run.Feed(0, 0); };
                return run.trainer().step(feed).status();
              }),
      HasSubstr(
          "input \"words\": got 14 elements, expected 6, those of i64[2,3] on this rank at size 3 "
          "(Trainer::set_size)"));
  EXPECT_THAT(ErrorOf(1, {},
                      [](SizedRun& run, int) {
                        const auto feed = [&](int64_t) { return run.trainer().set_size(3); };
                        return run.trainer().step(feed).status();
                      }),
              HasSubstr("set_size: got a call within step 1; call it between steps"));
}

}  // namespace
}  // namespace zg::testing
