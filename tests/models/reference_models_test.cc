// Compares models and modules with those of PyTorch and transformers, from the latter's own files:
// logits, gradients and twenty training steps (tests/reference/make_models.py made them, logits and
// gradients in double precision), on 1 and 3 ranks that share the batches, at stages 0 and 3. Llama,
// Qwen2 and Mixtral also run on a mesh with a tensor axis, where parameters and the sequence, or
// experts, are split and blocks recomputed.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "framework/comm/in_process.h"
#include "framework/ops/register_all_ops.h"
#include "tests/models/small_models.h"
#include "zero/zerograph/make_trainer.h"

namespace zg {
namespace {

using Json = nlohmann::json;

constexpr double kLossTolerance = 1e-5;
// Relative to the largest element of a tensor.
constexpr double kLogitTolerance = 1e-5;
constexpr double kGradientTolerance = 1e-5;

// `absolute` is added.
void ExpectClose(const std::string& what, const std::vector<float>& got,
                 const std::vector<float>& want, double tolerance, double absolute = 0.0) {
  ASSERT_EQ(got.size(), want.size()) << what;
  double largest = 0.0;
  double worst = 0.0;
  for (size_t i = 0; i < got.size(); ++i) {
    largest = std::max(largest, std::abs(static_cast<double>(want[i])));
    worst = std::max(worst, std::abs(static_cast<double>(got[i]) - want[i]));
  }
  EXPECT_LE(worst, tolerance * largest + absolute)
      << what << ": the largest element is " << largest;
}

struct Run {
  std::string name;
  int ranks;
  int stage;
  int tensor = 1;  // ranks that share a micro-batch

  int data_ranks() const { return ranks / tensor; }
};

// Like models/llama/tensor.placement and experts.placement, except for the vocabulary, which is odd
// here.
void SplitLlama(CompileOptions* options, const Run& run) {
  options->mesh = {{"data", run.data_ranks()}, {"tensor", run.tensor}};
  const bool has_experts = run.name == "mixtral" || run.name == "qwen3_moe";
  const auto place = [&](const char* module, Sbp sbp) {
    options->place(std::string("model.layers.*.") + module, "tensor", sbp);
  };
  for (const char* module : {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"}) {
    place(module, Sbp::S(0));
  }
  place("self_attn.o_proj.weight", Sbp::S(1));
  if (has_experts) {
    place("mlp.experts", Sbp::S(0));
  } else {
    place("mlp.gate_proj", Sbp::S(0));
    place("mlp.up_proj", Sbp::S(0));
    place("mlp.down_proj.weight", Sbp::S(1));
    options->place_results("model.embed_tokens", "tensor", Sbp::S(1));
  }
  options->recompute = {"model.layers.*"};
}

std::ostream& operator<<(std::ostream& out, const Run& run) { return out << run.name; }

class ReferenceModels : public ::testing::TestWithParam<Run> {
 protected:
  std::string folder() const { return testing::ReferenceFolder(GetParam().name); }

  // Calls f(trainer, communicator) on every rank of a run from the reference's parameters.
  template <typename Optimizer, typename F>
  void OnRanks(const Optimizer& optimizer, const F& f) const {
    RegisterAllOps();
    const Status status = RunRanks(GetParam().ranks, [&](Communicator& communicator) -> Status {
      const testing::SmallModel model = testing::SmallModels().at(GetParam().name)();
      const int64_t batch = testing::kReferenceBatch / GetParam().data_ranks();
      Graph graph("reference");
      graph.train(optimizer, [&](Inputs& in) {
        const Var result = model.result(in, batch);
        return model.loss(result, in, batch);
      });
      graph.eval("run", [&](Inputs& in) { return model.result(in, batch); });
      graph.config().zero.stage = GetParam().stage;
      graph.config().zero.shard_min_elements = 0;
      if (GetParam().tensor > 1) SplitLlama(&graph.config(), GetParam());
      ZG_ASSIGN_OR_RETURN(const std::unique_ptr<Trainer> trainer,
                          make_trainer(graph, communicator));
      ZG_RETURN_IF_ERROR(trainer->load_parameters(folder() + "/model.safetensors"));
      return f(*trainer, communicator);
    });
    EXPECT_TRUE(status.ok()) << status.message();
  }
};

TEST_P(ReferenceModels, GivesTheLogits) {
  const testing::ReferenceData data(GetParam().name);
  OnRanks(optim::Sgd{.lr = 0.1}, [&](Trainer& trainer, Communicator& communicator) -> Status {
    ZG_RETURN_IF_ERROR(data.Feed(trainer, "run", 0, trainer.data_rank(), trainer.num_data_ranks()));
    ZG_RETURN_IF_ERROR(trainer.eval("run", {}));
    ZG_ASSIGN_OR_RETURN(const std::vector<float> logits, trainer.result("run"));
    if (communicator.rank() == 0) {
      ExpectClose("logits", logits, data.Floats("logits"), kLogitTolerance);
    }
    return Status::Ok();
  });
}

// A step of size 1 subtracts the gradient from the parameters.
TEST_P(ReferenceModels, GivesTheGradients) {
  const testing::ReferenceData data(GetParam().name);
  OnRanks(optim::Sgd{.lr = 1.0}, [&](Trainer& trainer, Communicator&) -> Status {
    ZG_ASSIGN_OR_RETURN(const NamedValues before, trainer.consolidate_parameters(0));
    const StatusOr<float> loss = trainer.step([&](int64_t micro_batch) {
      return data.Feed(trainer, "", 0, micro_batch, trainer.num_data_ranks());
    });
    ZG_RETURN_IF_ERROR(loss.status());
    ZG_ASSIGN_OR_RETURN(const NamedValues after, trainer.consolidate_parameters(0));
    for (const auto& [name, values] : before) {
      std::vector<float> gradient = values.values;
      const std::vector<float>& updated = after.find(name)->second.values;
      double rounding = 1e-7;  // of values that cancel to 0, and of the updated parameters
      for (size_t i = 0; i < gradient.size(); ++i) {
        rounding = std::max(rounding, 0x1p-24 * std::abs(static_cast<double>(gradient[i])));
        gradient[i] -= updated[i];
      }
      ExpectClose(name, gradient, data.Floats("gradient." + name), kGradientTolerance, rounding);
    }
    return Status::Ok();
  });
}

TEST_P(ReferenceModels, TrainsAsTheyDo) {
  const testing::ReferenceData data(GetParam().name);
  const Json losses = Json::parse(std::ifstream(folder() + "/losses.json"));
  const optim::Sgd sgd = {.lr = losses["lr"], .momentum = losses["momentum"]};
  OnRanks(sgd, [&](Trainer& trainer, Communicator&) -> Status {
    const std::vector<double> want = losses["losses"];
    const std::vector<double> exact = losses["losses_float64"];
    for (size_t step = 0; step < want.size(); ++step) {
      ZG_ASSIGN_OR_RETURN(const float loss, trainer.step([&](int64_t micro_batch) {
        return data.Feed(trainer, "", static_cast<int64_t>(step), micro_batch,
                         trainer.num_data_ranks());
      }));
      // In addition to the error of their f32 results.
      const double tolerance = kLossTolerance * want[step] + std::abs(want[step] - exact[step]);
      EXPECT_NEAR(loss, want[step], tolerance) << "step " << step + 1;
    }
    return Status::Ok();
  });
}

std::vector<Run> Runs() {
  std::vector<Run> runs;
  for (const auto& [name, make] : testing::SmallModels()) {
    for (const int ranks : {1, 3}) {
      for (const int stage : {0, 3}) runs.push_back({name, ranks, stage});
    }
  }
  for (const char* name : {"llama", "qwen2", "mixtral", "qwen3", "qwen3_moe"}) {
    runs.push_back({name, 4, 3, 2});
    runs.push_back({name, 2, 0, 2});
  }
  return runs;
}

INSTANTIATE_TEST_SUITE_P(All, ReferenceModels, ::testing::ValuesIn(Runs()), [](const auto& info) {
  return fmt::format("{}_{}_ranks_stage_{}{}", info.param.name, info.param.ranks, info.param.stage,
                     info.param.tensor > 1 ? "_tensor" : "");
});

}  // namespace
}  // namespace zg
