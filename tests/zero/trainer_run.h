// What tests of trainers in several configurations have in common. A Run is made of a Config and a
// communicator, and has status() and trainer(); a Config has `stage`,
// `overlap_bytes` and `on_device`.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "framework/train/trainer.h"
#include "tests/testing/on_device.h"
#include "tests/testing/results_on_ranks.h"

namespace zg::testing {

inline StatusOr<std::string> DigestsOf(Trainer& trainer) {
  ZG_ASSIGN_OR_RETURN(const TensorDigest parameters, trainer.digest_parameters());
  ZG_ASSIGN_OR_RETURN(const TensorDigest state, trainer.digest_optimizer_state());
  return parameters.sha256 + " " + state.sha256;
}

// The losses of `step(run)`, so many times, and the final digests, on rank 0. After `save_after` steps
// the run is saved, and a new one goes on.
template <typename Run, typename Config, typename Step>
std::string LossesOf(int ranks, const Config& config, int64_t steps, int64_t save_after,
                     const Step& step) {
  const std::string directory = std::filesystem::path(::testing::TempDir()) / "run";
  std::filesystem::remove_all(directory);
  return ResultsOnRanks<std::string>(ranks, [&](Communicator& host, std::string* result) -> Status {
    return OnDevice(config.on_device, host, [&](Communicator& communicator) -> Status {
      std::optional<Run> run(std::in_place, config, communicator);
      ZG_RETURN_IF_ERROR(run->status());
      for (int64_t i = 0; i < steps; ++i) {
        ZG_ASSIGN_OR_RETURN(const float loss, step(*run));
        *result += fmt::format("{} ", loss);
        if (i + 1 != save_after) continue;
        ZG_RETURN_IF_ERROR(run->trainer().save(directory));
        run.emplace(config, communicator);
        ZG_RETURN_IF_ERROR(run->status());
        ZG_RETURN_IF_ERROR(run->trainer().resume(directory));
      }
      ZG_ASSIGN_OR_RETURN(const std::string digests, DigestsOf(run->trainer()));
      *result += digests;
      return Status::Ok();
    });
  })[0];
}

// `run_of(ranks, config)` is `expected` on 1 to 3 ranks, at all stages, with overlap and without.
template <typename Config, typename RunOf>
void ExpectSameBits(const std::string& expected, Config config, int64_t overlap_bytes,
                    const RunOf& run_of) {
  ASSERT_FALSE(expected.empty());
  for (const int ranks : {1, 2, 3}) {
    for (const int stage : {0, 1, 2, 3}) {
      SCOPED_TRACE(fmt::format("{} ranks, stage {}", ranks, stage));
      config.stage = stage;
      config.overlap_bytes = 0;
      EXPECT_EQ(run_of(ranks, config), expected);
      config.overlap_bytes = overlap_bytes;
      EXPECT_EQ(run_of(ranks, config), expected) << "overlap";
    }
  }
}

// The error of `body(run, rank)`, on rank 0.
template <typename Run, typename Config>
std::string ErrorOfRun(int ranks, const Config& config,
                       const std::function<Status(Run& run, int rank)>& body) {
  const auto results =
      TryOnRanks<std::string>(ranks, [&](Communicator& host, std::string*) -> Status {
        return OnDevice(config.on_device, host, [&](Communicator& communicator) -> Status {
          Run run(config, communicator);
          ZG_RETURN_IF_ERROR(run.status());
          return body(run, communicator.rank());
        });
      });
  return results.ok() ? "no error" : results.status().message();
}

}  // namespace zg::testing
