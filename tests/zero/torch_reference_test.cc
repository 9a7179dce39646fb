// Twenty steps from PyTorch's initial values on PyTorch's data give PyTorch's losses, sums of
// parameters, and with clipping its norms (tests/reference/make_reference.py made them): on 1, 2
// and 3 ranks that share its batches, at every stage. In bf16 the losses are close to those of
// autocast.

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <numeric>

#include "framework/comm/in_process.h"
#include "framework/io/safetensors.h"
#include "framework/ops/register_all_ops.h"
#include "framework/tensor/half.h"
#include "models/classifier/model.h"
#include "models/gpt/model.h"
#include "models/recipe/model.h"
#include "tests/testing/tensor_rules.h"
#include "zero/zerograph/make_trainer.h"

namespace zg {
namespace {

using Json = nlohmann::json;

constexpr double kRelativeTolerance = 1e-4;
constexpr double kMeshTolerance = 1e-5;  // relative, for losses if a mesh splits the model
constexpr double kNormTolerance = 1e-5;  // relative
// For a sum of parameters, per element and relative, in addition to PyTorch's own f32 rounding
// error.
constexpr double kSumTolerance = 2e-6;
// Relative, for losses in bf16, which has 8 bits: autocast leaves other operations in f32.
constexpr double kHalfTolerance = 0.03;

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

// The model of a case and the function that builds its loss from inputs "x" and "y" of one of
// `micro_batches` parts of a batch.
struct Model {
  std::unique_ptr<nn::Module> module;
  std::function<Var(Inputs&)> loss;
};

Model MakeModel(const Json& reference, int64_t micro_batches) {
  const Json& sizes = reference["model"];
  const int64_t batch = reference["batch"].get<int64_t>() / micro_batches;
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

// Sets this rank's part of every parameter; 16-bit copies are rounded.
Status SetParameters(Trainer& trainer, const SafetensorsFile& file) {
  for (const ir::StoredTensor& tensor : trainer.executor().graph().tensors()) {
    const bool is_copy = !tensor.copy_of.empty();
    const SafetensorsEntry* entry = file.Find(is_copy ? tensor.copy_of : tensor.name);
    if (entry == nullptr) continue;  // optimizer state
    if (Shape(entry->shape) != tensor.type.shape) {
      return InvalidArgument("{}: '{}' has another shape", file.path(), tensor.name);
    }
    const LocalPart part = trainer.executor().LocalPartOf(tensor).value();
    if (part.count == 0) continue;
    const float* const values = reinterpret_cast<const float*>(file.Data(*entry));
    part.ForEachRun([&](int64_t element, int64_t local, int64_t length) {
      if (is_copy) {
        std::transform(values + element, values + element + length,
                       reinterpret_cast<BFloat16*>(part.data) + local,
                       [](float value) { return FromF32<BFloat16>(value); });
      } else {
        std::memcpy(reinterpret_cast<float*>(part.data) + local, values + element,
                    length * sizeof(float));
      }
    });
  }
  return Status::Ok();
}

// The micro-batch of a step whose index is `part` of `parts`.
Status FeedPart(Trainer& trainer, const SafetensorsFile& file, int64_t part, int64_t parts) {
  for (const char* name : {"x", "y"}) {
    const SafetensorsEntry* entry = file.Find(std::string("data.") + name);
    const int64_t bytes = static_cast<int64_t>(entry->size_bytes()) / parts;
    const DType dtype = entry->dtype == SafetensorsDType::kI64 ? DType::kI64 : DType::kF32;
    ZG_RETURN_IF_ERROR(
        trainer.executor().SetInput("", name, dtype, file.Data(*entry) + part * bytes, bytes));
  }
  return Status::Ok();
}

struct RunConfig {
  int ranks = 1;
  int stage = 0;
  int64_t micro_batches = 1;
  DType dtype = DType::kF32;
  int tensor = 1;  // ranks that share a micro-batch, with the parameters of a GPT split
};

// The result of rank 0, except the sums.
struct Result {
  std::vector<double> losses;
  std::vector<double> norms;  // with clipping
  std::map<std::string, double> sums;
};

// Adds this rank's parts, unless a lower rank has the same ones.
void AddSums(Trainer& trainer, int rank, std::mutex* mutex, Result* result) {
  const std::lock_guard<std::mutex> lock(*mutex);
  for (const ir::StoredTensor& tensor : trainer.executor().graph().tensors()) {
    if (!ir::HasRole(*tensor.storage, Role::kParameter)) continue;
    const LocalPart part = trainer.executor().LocalPartOf(tensor).value();
    const bool is_whole = part.count == tensor.type.shape.num_elements() && part.begin == 0;
    if (is_whole && tensor.storage->sbp[0].is_broadcast() && rank != 0) continue;
    const auto* const values = reinterpret_cast<const float*>(part.data);
    double& sum = result->sums[tensor.name];
    sum = std::accumulate(values, values + part.count, sum);
  }
}

// Parameters and the residual stream over the axis tensor; blocks are recomputed.
void SplitGpt(int data_ranks, int tensor, CompileOptions* options) {
  options->mesh = {{"data", data_ranks}, {"tensor", tensor}};
  options->placement = testing::GptTensorRules();
  options->place_results("token_embedding", "tensor", Sbp::S(1));
  options->recompute = {"blocks.*"};
}

Status Train(const Json& reference, const Json& run, const RunConfig& config,
             Communicator& communicator, std::mutex* mutex, Result* result) {
  const Model model = MakeModel(reference, config.micro_batches);
  Graph graph("reference");
  graph.train(MakeOptimizer(run), model.loss);
  if (run.contains("max_norm")) graph.config().max_grad_norm = run["max_norm"];
  graph.config().enable_zero({.stage = config.stage, .bucket_bytes = 4096});
  graph.config().micro_batches = config.micro_batches;
  graph.config().dtype = config.dtype;
  if (config.tensor > 1) SplitGpt(config.ranks / config.tensor, config.tensor, &graph.config());
  ZG_ASSIGN_OR_RETURN(const std::unique_ptr<Trainer> trainer,
                      make_trainer(graph, communicator, {}));
  const std::string path =
      "tests/reference/" + reference["case"].get<std::string>() + ".safetensors";
  ZG_ASSIGN_OR_RETURN(const SafetensorsFile file, SafetensorsFile::Open(path));
  ZG_RETURN_IF_ERROR(SetParameters(*trainer, file));
  const int steps = reference["steps"];
  for (int step = 0; step < steps; ++step) {
    const auto feed = [&](int64_t micro_batch) {
      return FeedPart(*trainer, file, step * config.micro_batches + micro_batch,
                      steps * config.micro_batches);
    };
    ZG_ASSIGN_OR_RETURN(const float loss, trainer->step(feed));
    if (communicator.rank() != 0) continue;
    result->losses.push_back(loss);
    if (trainer->grad_norm().has_value()) result->norms.push_back(*trainer->grad_norm());
  }
  if (config.dtype == DType::kF32 && config.tensor == 1)
    AddSums(*trainer, communicator.rank(), mutex, result);
  return Status::Ok();
}

Result TrainOnRanks(const Json& reference, const Json& run, const RunConfig& config) {
  RegisterAllOps();
  Result result;
  std::mutex mutex;
  const Status status = RunRanks(config.ranks, [&](Communicator& communicator) {
    return Train(reference, run, config, communicator, &mutex, &result);
  });
  EXPECT_TRUE(status.ok()) << status.message();
  return result;
}

void ExpectNear(const std::vector<double>& got, const Json& expected, double tolerance) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t step = 0; step < got.size(); ++step) {
    const double value = expected[step];
    EXPECT_NEAR(got[step], value, tolerance * value) << "step " << step + 1;
  }
}

// Parameters whose gradient is rounding noise are meaningless, because Adam makes full steps of it.
bool SaysSomething(const Json& reference, const Json& run, const std::string& parameter) {
  if (!reference["zero_gradient"].contains(parameter) || run["optimizer"] == "sgd") return true;
  return run["optimizer"] == "adam" && run["hyperparameters"]["weight_decay"] > 0;
}

void ExpectSums(const Json& reference, const Json& run, const Result& result) {
  ASSERT_EQ(result.sums.size(), run["final_param_sums"].size());
  const StatusOr<SafetensorsFile> file = SafetensorsFile::Open(
      "tests/reference/" + reference["case"].get<std::string>() + ".safetensors");
  for (const auto& [name, sum] : result.sums) {
    if (!SaysSomething(reference, run, name)) continue;
    const double single = run["final_param_sums"][name];
    const double exact = run["final_param_sums_float64"][name];
    const double count = static_cast<double>(Shape(file->Find(name)->shape).num_elements());
    EXPECT_NEAR(sum, exact,
                4 * std::abs(single - exact) + kSumTolerance * (count + std::abs(exact)))
        << name;
  }
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

TEST_P(TorchReferenceTest, SameLossesNormsAndParameters) {
  const Json reference = ReadCase(GetParam().model);
  const Json& run = reference["optimizers"][GetParam().optimizer];
  // Micro-batches and stages; the global batch is the same.
  for (const RunConfig& config : std::vector<RunConfig>{{1, 0, 1},
                                                        {1, 0, 3},
                                                        {2, 0, 2},
                                                        {2, 1, 6},
                                                        {2, 2, 2},
                                                        {2, 3, 6},
                                                        {3, 0, 6},
                                                        {3, 1, 3},
                                                        {3, 2, 6},
                                                        {3, 3, 3}}) {
    SCOPED_TRACE(fmt::format("{} ranks, stage {}, {} micro-batches", config.ranks, config.stage,
                             config.micro_batches));
    const Result result = TrainOnRanks(reference, run, config);
    ExpectNear(result.losses, run["losses"], kRelativeTolerance);
    if (run.contains("grad_norms")) ExpectNear(result.norms, run["grad_norms"], kNormTolerance);
    ExpectSums(reference, run, result);
  }
}

TEST(TorchReference, GptOnAMeshWithATensorAxis) {
  const Json reference = ReadCase("gpt");
  for (const Json& run : reference["optimizers"]) {
    for (const RunConfig& config :
         {RunConfig{4, 3, 2, DType::kF32, 2}, RunConfig{4, 2, 6, DType::kF32, 2}}) {
      SCOPED_TRACE(fmt::format("{}, stage {}", run["name"].get<std::string>(), config.stage));
      const Result result = TrainOnRanks(reference, run, config);
      ExpectNear(result.losses, run["losses"], kMeshTolerance);
      if (run.contains("grad_norms")) ExpectNear(result.norms, run["grad_norms"], kNormTolerance);
    }
  }
}

TEST_P(TorchReferenceTest, Bf16IsNearAutocast) {
  const Json reference = ReadCase(GetParam().model);
  const Json& run = reference["optimizers"][GetParam().optimizer];
  for (const RunConfig& config : std::vector<RunConfig>{
           {1, 0, 1, DType::kBF16}, {2, 2, 2, DType::kBF16}, {3, 3, 3, DType::kBF16}}) {
    SCOPED_TRACE(fmt::format("{} ranks, stage {}", config.ranks, config.stage));
    ExpectNear(TrainOnRanks(reference, run, config).losses, run["losses_bfloat16"], kHalfTolerance);
  }
}

}  // namespace
}  // namespace zg
