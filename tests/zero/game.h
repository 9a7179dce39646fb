// A generator and its critic, for tests of steps that update the parameters of some groups; data and
// first parameters are those of tests/reference/turns.json.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "framework/nn/nn.h"
#include "tests/testing/fake_device.h"
#include "zero/zerograph/make_trainer.h"

namespace zg::testing {

using Json = nlohmann::json;

inline constexpr int64_t kNoise = 4, kChannels = 6, kMicroBatch = 2;

inline const Json& Reference() {
  static const auto& reference =
      *new Json(Json::parse(std::ifstream("tests/reference/turns.json")));
  return reference;
}

struct Player : nn::Module {
  Player(const nn::Module* parent, const std::string& name, int64_t in, int64_t out)
      : Module(parent, name), hidden(this, "hidden", in, 8), output(this, "output", 8, out) {}
  Var forward(Var x) override { return output(tanh(hidden(x))); }

  nn::Linear hidden, output;
};

struct Players : nn::Module {
  Player generator{this, "generator", kNoise, kChannels};
  Player critic{this, "critic", kChannels, 1};

  Outputs Losses(Var noise, Var real) {
    const Var made = generator(noise);
    const Var of_critic = mean(softplus(-critic(real)) + softplus(critic(stop_gradient(made))));
    const nn::ConstantParameters constant(critic);
    const Var of_generator = mean(softplus(-critic(made)));
    return {{"loss", of_critic + of_generator},
            {"critic_loss", of_critic},
            {"generator_loss", of_generator}};
  }
};

inline Status SetFirstParameters(Trainer& trainer) {
  NamedValues first;
  for (const auto& [name, values] : Reference()["first"].items()) {
    first[name].values = values.get<std::vector<float>>();
  }
  ZG_ASSIGN_OR_RETURN(NamedValues own, trainer.consolidate_parameters());
  for (auto& [name, tensor] : own) tensor.values = first.at(name).values;
  return trainer.scatter_parameters(own);
}

// Those of one micro-batch.
inline std::vector<float> SamplesOf(const char* input, int64_t channels, int64_t step,
                                    int64_t micro_batch) {
  static const std::vector<float> noise = Reference()["noise"], real = Reference()["real"];
  const std::vector<float>& all = input[0] == 'n' ? noise : real;
  const int64_t first =
      (step * Reference()["samples"].get<int64_t>() + micro_batch * kMicroBatch) * channels;
  return std::vector<float>(all.begin() + first, all.begin() + first + kMicroBatch * channels);
}

inline void ExpectNear(const std::vector<float>& got, const Json& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_NEAR(got[i], want[i].get<float>(), 1e-5 * std::max(1.0f, std::abs(got[i])));
  }
}

struct Config {
  int stage = 0;
  DType dtype = DType::kF32;
  ReduceEvery reduce_every = ReduceEvery::kMicroBatch;
  int64_t overlap_bytes = 0;
  bool update_early = false;
  bool profile = false;
  int64_t micro_batches = 6;
  bool on_device = false;
  bool record = false;
  // Both players'; not set: Adam and AdamW.
  std::optional<optim::Optimizer> optimizer = std::nullopt;
};

class Game {
 public:
  Game(const Config& config, Communicator& communicator) : graph_("game") {
    optim::Adam adam{0.02};
    adam.beta1 = 0.5;
    graph_.train(config.optimizer.value_or(adam), [&](Inputs& in) {
      const Var noise = in.f32("noise", {kMicroBatch, kNoise});
      return players_.Losses(noise, in.f32("real", {kMicroBatch, kChannels}));
    });
    optim::AdamW adamw{0.03};
    adamw.weight_decay = 0.1;
    graph_.add_parameter_group({"critic", "critic.**", config.optimizer.value_or(adamw)});
    CompileOptions& options = graph_.config();
    options.zero.stage = config.stage;
    options.zero.bucket_bytes = 128;
    options.zero.shard_min_elements = 0;
    options.micro_batches = config.micro_batches;
    options.dtype = config.dtype;
    options.reduce_every = config.reduce_every;
    options.overlap_bytes = config.overlap_bytes;
    options.update_early = config.update_early;
    TrainerOptions trainer_options;
    trainer_options.profile = config.profile;
    trainer_options.record = config.record;
    if (config.on_device) trainer_options.kernels = &FakeDeviceKernels();
    made_ = make_trainer(graph_, communicator, trainer_options);
  }

  Status status() const { return made_.status(); }
  Trainer& trainer() { return **made_; }

  // The step that is next: the critic's twice, then the generator's.
  StatusOr<float> Step() {
    const int64_t step = trainer().steps_done();
    const std::string player = step % 3 == 2 ? "" : "critic";
    return trainer().step_groups({player},
                                 [&](int64_t micro_batch) { return Feed(step, micro_batch); });
  }

  Status Feed(int64_t step, int64_t micro_batch) {
    noise_ = SamplesOf("noise", kNoise, step, micro_batch);
    real_ = SamplesOf("real", kChannels, step, micro_batch);
    return trainer().feed({{"noise", noise_}, {"real", real_}});
  }

 private:
  Players players_;
  Graph graph_;
  StatusOr<std::unique_ptr<Trainer>> made_ = NotFound("not made");
  std::vector<float> noise_, real_;
};

}  // namespace zg::testing
