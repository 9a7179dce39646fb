// A model that is trained in three phases, for tests: all of it, an encoder with its decoder, and a
// classifier of what the encoder makes. Each has inputs of its own.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "framework/nn/nn.h"
#include "tests/testing/fake_device.h"
#include "zero/zerograph/make_trainer.h"

namespace zg::testing {

inline constexpr int64_t kFew = 2, kMany = 3;  // samples of a micro-batch
inline constexpr int64_t kInputs = 6, kHidden = 8, kClasses = 5;

struct PhasedModel : nn::Module {
  nn::Linear encoder{this, "encoder", kInputs, kHidden};
  nn::BatchNorm1d norm{this, "norm", kHidden};
  nn::Linear decoder{this, "decoder", kHidden, kInputs};
  nn::Linear classifier{this, "classifier", kHidden, kClasses};
  nn::Linear judge{this, "judge", kInputs, kHidden};  // frozen, and asked in one phase only

  PhasedModel() {
    judge.weight.freeze();
    judge.bias->freeze();
  }

  Var Encoded(Var x) { return tanh(norm(encoder(x))); }
};

inline const std::vector<std::string> kPhases = {"both", "rebuild", "classify"};

struct PhasedConfig {
  int stage = 0;
  DType dtype = DType::kF32;
  int64_t overlap_bytes = 0;
  bool clips = false;
  bool recomputes = false;
  bool on_device = false;
  bool records = false;
  int threads = 1;
  // Only this one, by Graph::train with one function.
  std::string only = "";
  optim::Optimizer optimizer = optim::AdamW{0.02};
  std::function<void(CompileOptions& options)> change = nullptr;
};

class PhasedRun {
 public:
  PhasedRun(const PhasedConfig& config, Communicator& communicator) : graph_("phased") {
    const std::vector<Phase> phases = {
        {"both", [&](Inputs& in) { return Both(in); }},
        {"rebuild", [&](Inputs& in) { return Rebuild(in); }},
        {"classify", [&](Inputs& in) { return Classify(in); }},
    };
    if (config.only.empty()) {
      graph_.train(config.optimizer, phases);
      graph_.add_parameter_group({"autoencoder", "encoder.**,norm.**,decoder.**"});
    } else {
      const size_t phase = std::find(kPhases.begin(), kPhases.end(), config.only) - kPhases.begin();
      graph_.train(config.optimizer, phases[phase].build);
    }
    graph_.eval("classes", [&](Inputs& in) {
      return model_.classifier(model_.Encoded(in.f32("x", {kFew, kInputs})));
    });
    CompileOptions& options = graph_.config();
    options.zero.stage = config.stage;
    options.zero.bucket_bytes = 256;
    options.zero.shard_min_elements = 0;
    options.dtype = config.dtype;
    options.micro_batches = 6;
    options.overlap_bytes = config.overlap_bytes;
    if (config.clips) options.max_grad_norm = 0.1;
    if (config.recomputes) options.recompute = {"encoder"};
    if (config.change) config.change(options);
    TrainerOptions trainer_options;
    trainer_options.threads = config.threads;
    if (config.on_device) trainer_options.kernels = &FakeDeviceKernels();
    trainer_options.record = config.records;
    made_ = make_trainer(graph_, communicator, trainer_options);
  }

  Status status() const { return made_.status(); }
  Trainer& trainer() { return **made_; }

  StatusOr<float> Step(const std::string& phase) {
    if (!trainer().phase().empty()) ZG_RETURN_IF_ERROR(trainer().set_phase(phase));
    const int64_t step = trainer().steps_done();
    return trainer().step([&, phase](int64_t micro) { return Feed(phase, 6 * step + micro); });
  }

 private:
  Outputs Rebuild(Inputs& in) {
    const Var x = in.f32("x", {kMany, kInputs});
    return mse_loss(model_.judge(model_.decoder(model_.Encoded(x))), model_.judge(x));
  }

  // The encoder is as it is.
  Outputs Classify(Inputs& in) {
    const Var x = stop_gradient(model_.encoder(in.f32("x", {kFew, kInputs})));
    const Var logits = model_.classifier(dropout(x, 0.25));
    return {{"loss", cross_entropy(logits, in.i64("y", {kFew}))}, {"logits", logits}};
  }

  Outputs Both(Inputs& in) {
    const Var x = in.f32("x", {kFew, kInputs}), other = in.f32("other", {kMany, kInputs});
    const std::vector<Var> encoded = split_sizes(model_.Encoded(concat({x, other})), {kFew, kMany});
    const Var of_class = cross_entropy(model_.classifier(encoded[0]), in.i64("y", {kFew}));
    const Var of_image = mse_loss(model_.decoder(encoded[1]), other);
    return {{"loss", of_class + of_image}, {"of_class", of_class}};
  }

  Status Feed(const std::string& phase, int64_t number) {
    const auto numbers = [&](int64_t samples) {
      std::vector<float> values(samples * kInputs);
      for (size_t i = 0; i < values.size(); ++i) {
        values[i] =
            static_cast<float>((number * 31 + static_cast<int64_t>(i) * 7) % 23) / 11.5f - 1;
      }
      return values;
    };
    few_ = numbers(kFew);
    many_ = numbers(kMany);
    y_ = {number % kClasses, (number + 2) % kClasses};
    if (phase == "rebuild") return trainer().feed({{"x", many_}});
    if (phase == "classify") return trainer().feed({{"x", few_}, {"y", y_}});
    return trainer().feed({{"x", few_}, {"y", y_}, {"other", many_}});
  }

  PhasedModel model_;
  Graph graph_;
  StatusOr<std::unique_ptr<Trainer>> made_ = NotFound("not made");
  std::vector<float> few_, many_;
  std::vector<int64_t> y_;
};

}  // namespace zg::testing
