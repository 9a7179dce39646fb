// Every model has the same losses and parameters, bit for bit, at stages 0 to 3 on 1, 2 and 3 ranks,
// also with recomputed activations.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "framework/comm/in_process.h"
#include "framework/ops/register_all_ops.h"
#include "tests/models/small_models.h"
#include "zero/zerograph/make_trainer.h"

namespace zg {
namespace {

constexpr int64_t kMicroBatches = 6;  // of a step, over all ranks
constexpr int kSteps = 2;

struct Config {
  int ranks = 1;
  int stage = 0;
  DType dtype = DType::kF32;
  bool recomputes = false;
};

struct Result {
  std::vector<float> losses;
  std::vector<std::vector<float>> parameters;
};

Result TrainWith(const std::string& name, const Config& config) {
  RegisterAllOps();
  const testing::ReferenceData data(name);
  Result result;
  const Status status = RunRanks(config.ranks, [&](Communicator& communicator) -> Status {
    const testing::SmallModel model = testing::SmallModels().at(name)();
    const int64_t batch = testing::kReferenceBatch / kMicroBatches;
    Graph graph(name);
    graph.train(optim::AdamW{.lr = 0.01}, [&](Inputs& in) {
      const Var y = model.result(in, batch);
      return model.loss(y, in, batch);
    });
    graph.config().zero.stage = config.stage;
    graph.config().zero.shard_min_elements = 0;
    graph.config().micro_batches = kMicroBatches;
    graph.config().dtype = config.dtype;
    // A root alone has no modules to name.
    const std::string first = model.module->named_parameters().front().name;
    if (config.recomputes && first.find('.') != first.npos) graph.config().recompute = {"*"};
    ZG_ASSIGN_OR_RETURN(const std::unique_ptr<Trainer> trainer, make_trainer(graph, communicator));
    ZG_RETURN_IF_ERROR(
        trainer->load_parameters(testing::ReferenceFolder(name) + "/model.safetensors"));
    std::vector<float> losses;
    for (int step = 0; step < kSteps; ++step) {
      ZG_ASSIGN_OR_RETURN(const float loss, trainer->step([&](int64_t micro_batch) {
        return data.Feed(*trainer, "", step, micro_batch, kMicroBatches);
      }));
      losses.push_back(loss);
    }
    ZG_ASSIGN_OR_RETURN(const NamedValues parameters, trainer->consolidate_parameters(0));
    if (communicator.rank() != 0) return Status::Ok();
    result.losses = losses;
    for (const auto& [path, values] : parameters) result.parameters.push_back(values.values);
    return Status::Ok();
  });
  EXPECT_TRUE(status.ok()) << status.message();
  return result;
}

class ModelBits : public ::testing::TestWithParam<std::string> {};

TEST_P(ModelBits, AreTheSameAtAnyStageOnAnyNumberOfRanks) {
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    const Result expected = TrainWith(GetParam(), {1, 0, dtype});
    ASSERT_EQ(expected.losses.size(), kSteps);
    for (const int ranks : {1, 2, 3}) {
      for (const int stage : {0, 1, 2, 3}) {
        SCOPED_TRACE(fmt::format("{}, {} ranks, stage {}", DTypeName(dtype), ranks, stage));
        const Result got = TrainWith(GetParam(), {ranks, stage, dtype, ranks == 2 && stage == 3});
        EXPECT_EQ(got.losses, expected.losses);
        EXPECT_EQ(got.parameters, expected.parameters);
      }
    }
  }
}

std::vector<std::string> Names() {
  std::vector<std::string> names;
  for (const auto& [name, make] : testing::SmallModels()) names.push_back(name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(All, ModelBits, ::testing::ValuesIn(Names()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace zg
