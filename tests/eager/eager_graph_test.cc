// Eager execution has the bits of the same model in a graph on the same device: results of evals,
// losses, gradients and parameters after steps.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "framework/eager/eager.h"
#include "framework/kernels/cpu/sharing.h"
#include "framework/nn/nn.h"
#include "tests/eager/one_rank.h"
#include "tests/eager/subjects.h"
#include "zero/zerograph/make_trainer.h"

namespace zg {
namespace {

constexpr int kSteps = 2;
constexpr uint64_t kSeed = 5;

using testing::Subject;
using testing::Subjects;

struct Outcome {
  std::vector<float> prediction;
  std::vector<float> losses;
  std::map<std::string, std::vector<float>> gradients;  // of the first step
  std::map<std::string, std::vector<float>> parameters;
  std::vector<float>
      prediction_after;  // the steps, by the weights that the optimizer has for evals
};

std::vector<float> Floats(int64_t count) {
  std::vector<float> values(count);
  for (int64_t i = 0; i < count; ++i) values[i] = static_cast<float>(i * 7 % 23) / 11.0f - 1.0f;
  return values;
}

std::vector<int64_t> Integers(int64_t count, int64_t limit) {
  std::vector<int64_t> values(count);
  for (int64_t i = 0; i < count; ++i) values[i] = (i * 5 + 3) % limit;
  return values;
}

Var DataOf(Inputs& in, const TensorType& type) {
  return type.dtype == DType::kI64 ? in.i64("x", type.shape) : in.f32("x", type.shape);
}

Shape LabelsOf(const Var& y) {
  std::vector<int64_t> dims = y.shape().dims();
  dims.pop_back();
  return Shape(dims);
}

// With momentum, the optimizer's state after the first step is the gradient itself.
const optim::Sgd kOptimizer{0.1, 0.9};

Status RunGraph(const Subject& subject, const optim::Optimizer& optimizer,
                Communicator& communicator, Outcome* outcome) {
  Graph graph("subject");
  Shape labels;
  graph.train(optimizer, [&](Inputs& in) {
    const Var y = (*subject.model)(DataOf(in, subject.x));
    if (subject.classes == 0) return mean(square(y));
    labels = LabelsOf(y);
    return cross_entropy(y, in.i64("labels", labels));
  });
  graph.eval("predict", [&](Inputs& in) { return (*subject.model)(DataOf(in, subject.x)); });
  TrainerOptions options;
  options.seed = kSeed;
  ZG_ASSIGN_OR_RETURN(const auto trainer, make_trainer(graph, communicator, options));
  const int64_t count = subject.x.shape.num_elements();
  const std::vector<float> numbers = Floats(count);
  const std::vector<int64_t> tokens = Integers(count, std::max<int64_t>(subject.vocabulary, 1));
  const NamedData x =
      subject.x.dtype == DType::kI64 ? NamedData("x", tokens) : NamedData("x", numbers);
  const std::vector<int64_t> targets =
      Integers(labels.num_elements(), std::max<int64_t>(subject.classes, 1));
  ZG_RETURN_IF_ERROR(trainer->eval("predict", {x}));
  ZG_ASSIGN_OR_RETURN(outcome->prediction, trainer->result("predict"));
  for (int step = 0; step < kSteps; ++step) {
    ZG_ASSIGN_OR_RETURN(const float loss, trainer->step([&](int64_t) {
      return subject.classes == 0 ? trainer->feed({x}) : trainer->feed({x, {"labels", targets}});
    }));
    outcome->losses.push_back(loss);
    if (step > 0) continue;
    ZG_ASSIGN_OR_RETURN(const OptimizerState state, trainer->consolidate_optimizer_state());
    for (const auto& [name, tensor] : state.tensors) {
      outcome->gradients[name.substr(0, name.rfind('.'))] = tensor.values;
    }
  }
  ZG_ASSIGN_OR_RETURN(const NamedValues values, trainer->consolidate_parameters());
  for (const auto& [name, tensor] : values) outcome->parameters[name] = tensor.values;
  ZG_RETURN_IF_ERROR(trainer->eval("predict", {x}));
  ZG_ASSIGN_OR_RETURN(outcome->prediction_after, trainer->result("predict"));
  return Status::Ok();
}

Outcome RunEager(const Subject& subject, const optim::Optimizer& optimizer, int threads = 1) {
  Outcome outcome;
  EagerOptions options;
  options.seed = kSeed;
  options.threads = threads;
  options.gpu = testing::GpuOfOneRank();
  Eager eager{options};
  const int64_t count = subject.x.shape.num_elements();
  const Tensor x = subject.x.dtype == DType::kI64
                       ? eager.i64(subject.x.shape, Integers(count, subject.vocabulary))
                       : eager.f32(subject.x.shape, Floats(count));
  outcome.prediction = Tensor((*subject.model)(x)).values();
  eager.set_training(true);
  for (int step = 0; step < kSteps; ++step) {
    const Var y = (*subject.model)(x);
    const Shape labels = LabelsOf(y);
    const Tensor loss =
        subject.classes == 0
            ? mean(square(y))
            : cross_entropy(y, eager.i64(labels, Integers(labels.num_elements(), subject.classes)));
    loss.backward();
    outcome.losses.push_back(loss.item());
    for (const nn::Parameter* parameter : subject.model->parameters()) {
      const Tensor gradient = Tensor(*parameter).grad();
      if (step == 0 && !gradient.empty()) {
        outcome.gradients[parameter->path()] = gradient.values();
      }
    }
    eager.step(optimizer);
  }
  for (const nn::Parameter* parameter : subject.model->parameters()) {
    outcome.parameters[parameter->path()] = Tensor(*parameter).values();
  }
  for (const nn::Buffer* buffer : subject.model->buffers()) {
    outcome.parameters[buffer->path()] = Tensor(*buffer).values();
  }
  eager.set_training(false);
  outcome.prediction_after = Tensor((*subject.model)(x)).values();
  return outcome;
}

class EagerGraph : public ::testing::TestWithParam<std::string> {};

Outcome MustRunGraph(const Subject& subject, const optim::Optimizer& optimizer) {
  Outcome outcome;
  const Status status = testing::OnOneRank([&](Communicator& communicator) {
    return RunGraph(subject, optimizer, communicator, &outcome);
  });
  EXPECT_TRUE(status.ok()) << status.message();
  return outcome;
}

bool AreClose(const std::vector<float>& a, const std::vector<float>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](float one, float other) {
    return std::abs(one - other) <= 1e-5f * std::max(1.0f, std::abs(other));
  });
}

bool AreClose(const std::map<std::string, std::vector<float>>& a,
              const std::map<std::string, std::vector<float>>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& one, const auto& other) {
    return one.first == other.first && AreClose(one.second, other.second);
  });
}

void ExpectClose(const Outcome& eager, const Outcome& graph) {
  EXPECT_EQ(eager.prediction, graph.prediction);
  EXPECT_TRUE(AreClose(eager.losses, graph.losses));
  EXPECT_TRUE(AreClose(eager.gradients, graph.gradients));
  EXPECT_TRUE(AreClose(eager.parameters, graph.parameters));
  EXPECT_TRUE(AreClose(eager.prediction_after, graph.prediction_after));
}

TEST_P(EagerGraph, HaveTheSameBits) {
  const Subject subject = Subjects().at(GetParam())();
  const Outcome graph = MustRunGraph(subject, kOptimizer);
  for (const int threads : testing::ThreadCounts()) {
    SCOPED_TRACE(threads);
    ShareSmallWork(threads > 1);
    const Outcome eager = RunEager(Subjects().at(GetParam())(), kOptimizer, threads);
    ShareSmallWork(false);
    if (GetParam() == "vit" && testing::NormsSumBiasesDifferently()) {
      ExpectClose(eager, graph);
      continue;
    }
    EXPECT_EQ(eager.prediction, graph.prediction);
    EXPECT_EQ(eager.losses, graph.losses);
    EXPECT_EQ(eager.gradients, graph.gradients);
    EXPECT_EQ(eager.parameters, graph.parameters);
    EXPECT_EQ(eager.prediction_after, graph.prediction_after);
  }
}

// Optimizers that use whole tensors, which are in buckets in a graph, and optimizers whose evals read
// other weights than are trained.
TEST(EagerOptimizers, HaveTheSameBits) {
  for (const optim::Optimizer& optimizer :
       {optim::Optimizer(optim::Lamb{.lr = 0.05}),
        optim::Optimizer(optim::Adafactor{.lr = 0.05, .weight_decay = 0.1}),
        optim::Optimizer(optim::with_ema(optim::rule_of(optim::AdamW{0.05}), 0.9)),
        optim::Optimizer(optim::ScheduleFreeAdamW{.lr = 0.05})}) {
    for (const char* name : {"images", "gpt"}) {
      SCOPED_TRACE(name);
      const Subject subject = Subjects().at(name)();
      const Outcome graph = MustRunGraph(subject, optimizer);
      const Outcome eager = RunEager(subject, optimizer);
      EXPECT_EQ(eager.losses, graph.losses);
      EXPECT_EQ(eager.parameters, graph.parameters);
      EXPECT_EQ(eager.prediction_after, graph.prediction_after);
    }
  }
}

std::vector<std::string> Names() {
  std::vector<std::string> names;
  for (const auto& [name, make] : Subjects()) names.push_back(name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Subjects, EagerGraph, ::testing::ValuesIn(Names()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace zg
