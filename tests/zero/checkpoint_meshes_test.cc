// Saving on any mesh at any stage and resuming on any other: over data ranks, replicas and shards,
// and ranks that share micro-batches. A resumed state has the bits of the saved one. With the same
// number of ranks that share micro-batches, later steps have the bits of the uninterrupted run; with
// another number sums are taken in another order. It runs a sample of the pairs, or all of them with
// the environment variable ZG_WHOLE_MATRIX.

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "tests/io/test_file.h"
#include "tests/testing/tensor_rules.h"
#include "tests/zero/expect_run.h"
#include "tests/zero/training.h"

namespace zg::testing {
namespace {

constexpr int kSavedStep = 2;
constexpr int kSteps = 4;
constexpr double kTolerance = 1e-5;  // of losses, relative, between sizes of the tensor axis

const std::vector<std::vector<MeshAxis>> kMeshes = {
    {{"data", 1}},
    {{"data", 2}},
    {{"data", 3}},
    {{"data", 4}},
    {{"replica", 2}, {"shard", 2}},
    {{"replica", 3}, {"shard", 1}},
    {{"tensor", 2}},
    {{"data", 2}, {"tensor", 2}},
    {{"shard", 3}, {"tensor", 2}},
};

struct Place {
  size_t mesh = 0;
  int stage = 0;
};

bool IsShared(const std::vector<MeshAxis>& mesh) { return Mesh(mesh).FindAxis("tensor") >= 0; }

RunConfig On(const Place& place) {
  RunConfig config;
  config.model = TestModel::kEvenGpt;
  config.micro_batches = 12;
  config.stage = place.stage;
  config.mesh = kMeshes[place.mesh];
  config.ranks = Mesh(config.mesh).num_ranks();
  config.bucket_bytes = 1000 + 400 * static_cast<int64_t>(place.mesh);
  if (!IsShared(config.mesh)) return config;
  config.placement = GptTensorRules();
  config.placement.push_back({"token_embedding", "tensor", Sbp::S(0)});
  return config;
}

std::string NameOf(const Place& place) {
  return fmt::format("mesh({}), stage {}", Mesh(kMeshes[place.mesh]).ToString(), place.stage);
}

class CheckpointMeshesTest : public ::testing::Test {
 protected:
  CheckpointMeshesTest() {
    std::filesystem::remove_all(directory_);
    for (const bool shared : {false, true}) {
      RunConfig config = On({shared ? size_t{6} : size_t{0}, 0});
      config.steps = kSteps;
      uninterrupted_[shared] = TrainOrDie(config);
    }
  }
  ~CheckpointMeshesTest() override { std::filesystem::remove_all(directory_); }

  // A checkpoint's directory, and the digests of what it was written from.
  struct Saved {
    std::string directory;
    std::string param_sha256;
    std::string optimizer_sha256;
  };

  const Saved& SavedOn(const Place& place) {
    const std::string directory = fmt::format("{}/{}_{}", directory_, place.mesh, place.stage);
    Saved& saved = saved_[directory];
    if (!saved.directory.empty()) return saved;
    RunConfig config = On(place);
    config.steps = kSavedStep;
    config.save = directory;
    const RunResult result = TrainOrDie(config);
    return saved = {directory, result.param_sha256, result.optimizer_sha256};
  }

  void Resume(const Place& from, const Place& to) {
    SCOPED_TRACE(NameOf(from) + " to " + NameOf(to));
    RunConfig config = On(to);
    config.steps = kSteps;
    const Saved& saved = SavedOn(from);
    config.resume = saved.directory;
    const RunResult resumed = TrainOrDie(config);
    EXPECT_EQ(resumed.resumed_param_sha256, saved.param_sha256);
    EXPECT_EQ(resumed.resumed_optimizer_sha256, saved.optimizer_sha256);
    const bool shared = IsShared(kMeshes[to.mesh]);
    const RunResult& expected = uninterrupted_[shared];
    ASSERT_EQ(resumed.losses.size(), kSteps - kSavedStep);
    if (shared == IsShared(kMeshes[from.mesh])) {
      const std::vector<float> losses(expected.losses.begin() + kSavedStep, expected.losses.end());
      EXPECT_EQ(resumed.losses, losses);
      EXPECT_EQ(resumed.param_sha256, expected.param_sha256);
      EXPECT_EQ(resumed.optimizer_sha256, expected.optimizer_sha256);
    }
    for (int step = kSavedStep; step < kSteps; ++step) {
      EXPECT_NEAR(resumed.losses[step - kSavedStep] / expected.losses[step], 1, kTolerance);
    }
  }

  const std::string directory_ = TestPath("checkpoint_meshes");
  std::map<std::string, Saved> saved_;
  RunResult uninterrupted_[2];  // without and with ranks that share micro-batches
};

TEST_F(CheckpointMeshesTest, AnyToAny) {
  const bool is_whole = std::getenv("ZG_WHOLE_MATRIX") != nullptr;
  for (size_t to = 0; to < kMeshes.size(); ++to) {
    for (size_t from = 0; from < kMeshes.size(); ++from) {
      for (int stage = 0; stage < 16; ++stage) {
        // The sample has every pair of meshes, and every pair of stages several times.
        if (!is_whole && stage != static_cast<int>(7 * to + 3 * from) % 16) continue;
        Resume({from, stage / 4}, {to, stage % 4});
      }
    }
  }
}

}  // namespace
}  // namespace zg::testing
