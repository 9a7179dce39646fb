// Twenty steps from PyTorch's initial values on PyTorch's data give PyTorch's losses, and with
// clipping its norms (tests/reference/make_reference.py made them).

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>

#include "framework/comm/in_process.h"
#include "framework/io/safetensors.h"
#include "framework/ops/register_all_ops.h"
#include "models/classifier/model.h"
#include "models/gpt/model.h"
#include "models/recipe/model.h"
#include "zero/zerograph/make_trainer.h"

namespace zg {
namespace {

using Json = nlohmann::json;

constexpr double kRelativeTolerance = 1e-4;
constexpr double kNormTolerance = 1e-5;  // relative

struct Case {
  std::string model;
  int optimizer = 0;  // index in the file
};

std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.model; }

Json ReadCase(const std::string& model) {
  std::ifstream file("tests/reference/" + model + ".json");
  return Json::parse(file);
}

optim::Optimizer MakeOptimizer(const Json& run) {
  const Json& values = run["hyperparameters"];
  const double lr = values["lr"];
  const double decay = values["weight_decay"];
  if (run["optimizer"] == "sgd") {
    return optim::Sgd{.lr = lr, .momentum = values["momentum"], .weight_decay = decay};
  }
  const double beta1 = values["betas"][0];
  const double beta2 = values["betas"][1];
  if (run["optimizer"] == "adam") {
    return optim::Adam{
        .lr = lr, .beta1 = beta1, .beta2 = beta2, .epsilon = values["eps"], .weight_decay = decay};
  }
  return optim::AdamW{
      .lr = lr, .beta1 = beta1, .beta2 = beta2, .epsilon = values["eps"], .weight_decay = decay};
}

// The model of a case and the function that builds its loss from inputs "x" and "y".
struct Model {
  std::unique_ptr<nn::Module> module;
  std::function<Var(Inputs&)> loss;
};

Model MakeModel(const Json& reference) {
  const Json& sizes = reference["model"];
  const int64_t batch = reference["batch"];
  Model model;
  if (reference["case"] == "mlp") {
    const int64_t width = sizes["width"];
    model.module = std::make_unique<models::Recipe>(sizes["depth"].get<int64_t>(), width);
    model.loss = [=, module = model.module.get()](Inputs& in) {
      return mse_loss((*module)(in.f32("x", {batch, width})), in.f32("y", {batch, width}));
    };
  } else if (reference["case"] == "classifier") {
    const models::ClassifierConfig config = {sizes["inputs"], sizes["hidden"], sizes["classes"]};
    model.module = std::make_unique<models::Classifier>(config);
    model.loss = [=, module = model.module.get()](Inputs& in) {
      return cross_entropy((*module)(in.f32("x", {batch, config.inputs})), in.i64("y", {batch}));
    };
  } else {
    const models::GptConfig config = {sizes["layers"], sizes["heads"], sizes["channels"],
                                      sizes["context"], sizes["vocabulary"]};
    model.module = std::make_unique<models::Gpt>(config);
    model.loss = [=, module = model.module.get()](Inputs& in) {
      const Shape shape = {batch, config.context};
      return cross_entropy((*module)(in.i64("x", shape)), in.i64("y", shape));
    };
  }
  return model;
}

Status SetParameters(Trainer& trainer, const SafetensorsFile& file) {
  for (const ir::StoredTensor& tensor : trainer.executor().graph().tensors()) {
    if (tensor.storage->category != MemoryCategory::kParameters) continue;
    const SafetensorsEntry* entry = file.Find(tensor.name);
    if (entry == nullptr) return NotFound("{}: no tensor '{}'", file.path(), tensor.name);
    if (Shape(entry->shape) != tensor.type.shape) {
      return InvalidArgument("{}: '{}' has another shape", file.path(), tensor.name);
    }
    std::memcpy(trainer.executor().LocalPartOf(tensor).data, file.Data(*entry),
                entry->size_bytes());
  }
  return Status::Ok();
}

// The data of one step: the step-th part of `entry` along its first dim.
Status FeedStep(Trainer& trainer, const SafetensorsFile& file, int step, int steps) {
  for (const char* name : {"x", "y"}) {
    const SafetensorsEntry* entry = file.Find(std::string("data.") + name);
    const int64_t bytes = static_cast<int64_t>(entry->size_bytes()) / steps;
    ZG_RETURN_IF_ERROR(
        trainer.executor().SetInput("", name, file.Data(*entry) + step * bytes, bytes));
  }
  return Status::Ok();
}

class TorchReferenceTest : public ::testing::TestWithParam<Case> {};

INSTANTIATE_TEST_SUITE_P(Cases, TorchReferenceTest, ::testing::ValuesIn([] {
                           std::vector<Case> cases;
                           for (const char* model : {"mlp", "classifier", "gpt"}) {
                             const size_t count = ReadCase(model)["optimizers"].size();
                             for (size_t optimizer = 0; optimizer < count; ++optimizer) {
                               cases.push_back({model, static_cast<int>(optimizer)});
                             }
                           }
                           return cases;
                         }()),
                         [](const auto& info) {
                           return info.param.model + "_" +
                                  ReadCase(
                                      info.param.model)["optimizers"][info.param.optimizer]["name"]
                                      .template get<std::string>();
                         });

TEST_P(TorchReferenceTest, SameLosses) {
  RegisterAllOps();
  const Json reference = ReadCase(GetParam().model);
  const Json& run = reference["optimizers"][GetParam().optimizer];
  const Model model = MakeModel(reference);
  Graph graph(GetParam().model);
  graph.train(MakeOptimizer(run), model.loss);
  const bool is_clipped = run.contains("max_norm");
  if (is_clipped) graph.config().max_grad_norm = run["max_norm"];
  InProcessGroup group(1);
  StatusOr<std::unique_ptr<Trainer>> trainer = make_trainer(graph, group.communicator(0), {});
  ASSERT_TRUE(trainer.ok()) << trainer.status().message();
  StatusOr<SafetensorsFile> file =
      SafetensorsFile::Open("tests/reference/" + GetParam().model + ".safetensors");
  ASSERT_TRUE(file.ok()) << file.status().message();
  const Status set = SetParameters(**trainer, *file);
  ASSERT_TRUE(set.ok()) << set.message();

  const int steps = reference["steps"];
  ASSERT_EQ(run["losses"].size(), static_cast<size_t>(steps));
  for (int step = 0; step < steps; ++step) {
    StatusOr<float> loss =
        (*trainer)->Step([&](int64_t) { return FeedStep(**trainer, *file, step, steps); });
    ASSERT_TRUE(loss.ok()) << loss.status().message();
    const double expected = run["losses"][step];
    EXPECT_NEAR(*loss, expected, kRelativeTolerance * expected) << "step " << step + 1;
    ASSERT_EQ((*trainer)->grad_norm().has_value(), is_clipped);
    if (!is_clipped) continue;
    const double norm = run["grad_norms"][step];
    EXPECT_NEAR(*(*trainer)->grad_norm(), norm, kNormTolerance * norm) << "step " << step + 1;
  }
}

}  // namespace
}  // namespace zg
