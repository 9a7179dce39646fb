// Twenty steps of a small ResNet give PyTorch's losses, parameters and running statistics
// (tests/reference/make_resnet.py made them, in double precision): on 1 and 3 ranks, at stages 0 and 3.

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "framework/comm/in_process.h"
#include "framework/io/safetensors.h"
#include "framework/ops/register_all_ops.h"
#include "models/resnet/model.h"
#include "zero/zerograph/make_trainer.h"

namespace zg {
namespace {

using Json = nlohmann::json;

constexpr int64_t kMicroBatches = 3;
constexpr double kTolerance = 1e-5;  // relative to the largest, at least 1

std::vector<float> Floats(const SafetensorsFile& file, const std::string& name) {
  const SafetensorsEntry& entry = *file.Find(name);
  const auto* const values = reinterpret_cast<const float*>(file.Data(entry));
  return std::vector<float>(values, values + entry.size_bytes() / sizeof(float));
}

// The elements of a tensor in one of its `parts` equal parts.
template <typename T>
std::vector<T> PartOf(const SafetensorsFile& file, const char* name, int64_t part, int64_t parts) {
  const SafetensorsEntry& entry = *file.Find(name);
  const int64_t count = static_cast<int64_t>(entry.size_bytes() / sizeof(T)) / parts;
  const auto* const values = reinterpret_cast<const T*>(file.Data(entry)) + part * count;
  return std::vector<T>(values, values + count);
}

void ExpectNear(const std::vector<float>& got, const std::vector<float>& want,
                const std::string& what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  double largest = 1.0;
  for (const float value : want) largest = std::max<double>(largest, std::abs(value));
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_NEAR(got[i], want[i], kTolerance * largest) << what << " " << i;
  }
}

Status Train(int stage, Communicator& communicator) {
  const Json reference = Json::parse(std::ifstream("tests/reference/resnet.json"));
  ZG_ASSIGN_OR_RETURN(const SafetensorsFile file,
                      SafetensorsFile::Open("tests/reference/resnet.safetensors"));
  models::ResNetConfig config;
  config.image_channels = 1;
  config.classes = reference["model"]["classes"];
  config.blocks = 1;
  config.widths = reference["model"]["widths"].get<std::vector<int64_t>>();
  models::ResNet model(config);
  const int64_t batch = reference["batch"], size = reference["model"]["size"];
  Graph graph("resnet");
  graph.train(
      optim::Sgd{.lr = reference["lr"], .momentum = reference["momentum"]}, [&](Inputs& in) {
        return cross_entropy(model(in.f32("x", {batch, 1, size, size})), in.i64("y", {batch}));
      });
  graph.config().enable_zero({.stage = stage, .bucket_bytes = 1024});
  graph.config().micro_batches = kMicroBatches;
  ZG_ASSIGN_OR_RETURN(const std::unique_ptr<Trainer> trainer,
                      make_trainer(graph, communicator, {}));
  NamedValues tensors;
  ZG_ASSIGN_OR_RETURN(const NamedValues own, trainer->consolidate_parameters());
  for (const auto& [name, values] : own) {
    tensors[name] = WholeTensor(values.shape, Floats(file, "initial." + name));
  }
  ZG_RETURN_IF_ERROR(trainer->scatter_parameters(tensors));
  std::vector<float> losses, x;
  std::vector<int64_t> y;
  const auto steps = static_cast<int64_t>(reference["losses"].size());
  for (int64_t step = 0; step < steps; ++step) {
    ZG_ASSIGN_OR_RETURN(const float loss, trainer->step([&](int64_t micro_batch) {
      const int64_t part = step * kMicroBatches + micro_batch;
      const int64_t parts = steps * kMicroBatches;
      x = PartOf<float>(file, "data.x", part, parts);
      y = PartOf<int64_t>(file, "data.y", part, parts);
      return trainer->feed({{"x", x}, {"y", y}});
    }));
    losses.push_back(loss);
  }
  ZG_ASSIGN_OR_RETURN(const NamedValues trained, trainer->consolidate_parameters());
  if (communicator.rank() != 0) return Status::Ok();
  ExpectNear(losses, reference["losses"].get<std::vector<float>>(), "loss of step");
  EXPECT_GT(trained.size(), 20u);
  for (const auto& [name, values] : trained) {
    ExpectNear(values.values, Floats(file, "final." + name), name);
  }
  return Status::Ok();
}

TEST(ResNetReference, GivesPyTorchsLossesParametersAndStatistics) {
  RegisterAllOps();
  for (const int ranks : {1, 3}) {
    for (const int stage : {0, 3}) {
      SCOPED_TRACE(fmt::format("{} ranks, stage {}", ranks, stage));
      const Status status =
          RunRanks(ranks, [&](Communicator& communicator) { return Train(stage, communicator); });
      EXPECT_TRUE(status.ok()) << status.message();
    }
  }
}

}  // namespace
}  // namespace zg
