// Graphs that do not train, in 16 bits: their parameters take 2 bytes, and their results are those
// of the same model in a graph that trains, at any stage and on any number of ranks.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "framework/nn/nn.h"
#include "framework/tensor/half.h"
#include "models/llama/model.h"
#include "tests/testing/as_planned.h"
#include "tests/testing/logged.h"
#include "tests/testing/results_on_ranks.h"
#include "zero/zerograph/make_trainer.h"

namespace zg {
namespace {

constexpr int64_t kTokens = 6;
constexpr int64_t kVocabulary = 40;

struct Config {
  bool trains = false;
  DType dtype = DType::kBF16;
  int stage = 0;
  int ranks = 1;
  std::string save = {};  // other values, to this directory
  std::string resume = {};
};

struct Result {
  std::vector<float> logits;
  int64_t parameter_bytes = 0;
  int64_t num_parameters = 0;
  NamedValues parameters;
};

float Rounded(DType dtype, float value) {
  if (dtype == DType::kF32) return value;
  return dtype == DType::kBF16 ? ToF32(FromF32<BFloat16>(value)) : ToF32(FromF32<Float16>(value));
}

StatusOr<Result> RunOnRank(const Config& config, Communicator& communicator) {
  models::Llama model({2, 4, 2, 32, 48, kTokens, kVocabulary});
  Graph graph("rounded");
  graph.eval("predict", [&](Inputs& in) { return model(in.i64("x", {1, kTokens}, Sbp::B())); });
  if (config.trains) {
    graph.train(optim::AdamW{.lr = 0.1}, [&](Inputs& in) {
      return cross_entropy(model(in.i64("x", {1, kTokens})), in.i64("y", {1, kTokens}));
    });
  }
  graph.config().dtype = config.dtype;
  graph.config().zero.stage = config.stage;
  graph.config().zero.bucket_bytes = 4096;
  graph.config().zero.shard_min_elements = 0;
  ZG_ASSIGN_OR_RETURN(const std::unique_ptr<Trainer> trainer, make_trainer(graph, communicator));
  Result result;
  const std::vector<int64_t> x = {3, 1, 4, 15, 9, 26};
  ZG_RETURN_IF_ERROR(trainer->eval("predict", {{"x", x}}));
  ZG_ASSIGN_OR_RETURN(result.logits, trainer->result("predict"));
  if (!config.trains) testing::ExpectMemoryAsPlanned(trainer->executor());
  result.parameter_bytes =
      trainer->program().memory.category_bytes[static_cast<int>(MemoryCategory::kParameters)];
  result.num_parameters = graph.num_parameters();
  if (!config.resume.empty()) ZG_RETURN_IF_ERROR(trainer->resume(config.resume));
  ZG_ASSIGN_OR_RETURN(result.parameters, trainer->consolidate_parameters());
  if (config.save.empty()) return result;
  for (auto& [name, tensor] : result.parameters) {
    for (float& value : tensor.values) value = Rounded(config.dtype, 1.7f * value);
  }
  ZG_RETURN_IF_ERROR(trainer->scatter_parameters(result.parameters));
  ZG_RETURN_IF_ERROR(trainer->save(config.save));
  return result;
}

// What rank 0 sees.
Result RunModel(const Config& config) {
  return testing::ResultsOnRanks<Result>(
      config.ranks, [&](Communicator& communicator, Result* result) -> Status {
        ZG_ASSIGN_OR_RETURN(*result, RunOnRank(config, communicator));
        return Status::Ok();
      })[0];
}

TEST(RoundWeights, HaveTheResultsOfAModelThatTrainsAndTakeHalfTheMemory) {
  for (const DType dtype : {DType::kBF16, DType::kF16}) {
    const Result trained = RunModel({.trains = true, .dtype = dtype});
    for (const int ranks : {1, 2}) {
      for (const int stage : {0, 3}) {
        SCOPED_TRACE(fmt::format("{}, {} ranks, stage {}", DTypeName(dtype), ranks, stage));
        const Result result = RunModel({.dtype = dtype, .stage = stage, .ranks = ranks});
        EXPECT_EQ(result.logits, trained.logits);
        const int64_t parts = stage == 3 ? ranks : 1;
        EXPECT_GE(result.parameter_bytes, 2 * result.num_parameters / parts);
        EXPECT_LT(result.parameter_bytes, 2.1 * result.num_parameters / parts);  // alignment
        ASSERT_EQ(result.parameters.size(), trained.parameters.size());
        for (const auto& [name, master] : trained.parameters) {
          std::vector<float> expected = master.values;
          for (float& value : expected) value = Rounded(dtype, value);
          EXPECT_EQ(result.parameters.at(name).values, expected) << name;
        }
      }
    }
  }
}

TEST(RoundWeights, AreSavedWithAWarningAndResumed) {
  const std::string directory = ::testing::TempDir() + "/round_weights";
  const std::string warning = "graph rounded: the checkpoint has parameters rounded to bf16";
  for (const int stage : {0, 3}) {
    SCOPED_TRACE(stage);
    std::filesystem::remove_all(directory);
    const testing::Logged logged;
    const Result saved = RunModel({.stage = stage, .ranks = 2, .save = directory});
    EXPECT_NE(logged.text().find(warning), std::string::npos) << logged.text();
    const Result resumed = RunModel({.stage = stage, .resume = directory});
    ASSERT_EQ(resumed.parameters.size(), saved.parameters.size());
    for (const auto& [name, tensor] : saved.parameters) {
      EXPECT_EQ(resumed.parameters.at(name).values, tensor.values) << name;
    }
  }
}

TEST(RoundWeights, GraphsWithMastersAreSavedWithoutAWarning) {
  const std::string directory = ::testing::TempDir() + "/not_rounded";
  for (const Config& config : {Config{.trains = true, .save = directory},
                               Config{.dtype = DType::kF32, .save = directory}}) {
    std::filesystem::remove_all(directory);
    const testing::Logged logged;
    RunModel(config);
    EXPECT_EQ(logged.text().find("rounded to"), std::string::npos) << logged.text();
  }
}

}  // namespace
}  // namespace zg
