#include "tests/models/sensor_architectures.h"

namespace zg::testing {
namespace {

// Texts of sounds, without an alignment.
struct Speech : nn::Module {
  nn::Conv1d conv{this, "conv", 8, 12, 3, {.padding = 1}};
  nn::GRU gru{this, "gru", 12, 8, {.bidirectional = true}};
  nn::Linear output{this, "output", 16, 6};

  Var forward(Var x) override {
    const Var signal = relu(conv(transpose(x, 1, 2)));
    return output(gru(transpose(signal, 1, 2)));
  }
};

SmallModel MakeSpeech() {
  auto model = std::make_shared<Speech>();
  return {model,
          [=](Inputs& in, int64_t batch) {
            return (*model)(in.f32("x", {batch, 12, 8}));
          },
          [](Var logits, Inputs& in, int64_t batch) {
            const Var targets = in.i64("y", {batch, 4});
            const Var steps = in.i64("y_steps", {batch});
            return ctc_loss(log_softmax(logits), targets, steps, in.i64("y_lengths", {batch}));
          }};
}

// Looks at the part of an image that it chooses itself (a spatial transformer).
struct Looker : nn::Module {
  nn::Linear where1{this, "where1", 64, 8}, where2{this, "where2", 8, 6};
  nn::Conv2d conv{this, "conv", 1, 4, 3};
  nn::Linear output{this, "output", 4, 5};

  Var forward(Var x) override {
    const Var offset = 0.5 * where2(tanh(where1(flatten(x, 1))));
    const Var theta = reshape(offset, {x.dim(0), 2, 3}) + slice(eye(3), 0, 0, 2);
    const Var seen = grid_sample(x, affine_grid(theta, 6));
    return output(mean(softsign(conv(seen)), {2, 3}));
  }
};

SmallModel MakeLooker() {
  auto model = std::make_shared<Looker>();
  return {model,
          [=](Inputs& in, int64_t batch) {
            return (*model)(in.f32("x", {batch, 1, 8, 8}));
          },
          [](Var logits, Inputs& in, int64_t batch) {
            return cross_entropy(logits, in.i64("y", {batch}));
          }};
}

// Classifies videos.
struct Video : nn::Module {
  nn::Conv3d conv1{this, "conv1", 2, 4, 3, {.padding = 1}};
  nn::MaxPool3d pool{this, "pool", {1, 2, 2}};
  nn::Conv3d conv2{this, "conv2", 4, 6, {2, 3, 3}, {.stride = {1, 2, 2}, .groups = 2}};
  nn::Linear output{this, "output", 6, 5};

  Var forward(Var x) override { return output(mean(celu(conv2(pool(relu(conv1(x))))), {2, 3, 4})); }
};

SmallModel MakeVideo() {
  auto model = std::make_shared<Video>();
  return {model,
          [=](Inputs& in, int64_t batch) {
            return (*model)(in.f32("x", {batch, 2, 4, 8, 8}));
          },
          [](Var logits, Inputs& in, int64_t batch) {
            return cross_entropy(logits, in.i64("y", {batch}));
          }};
}

// Colours of rays through a field of densities (NeRF).
struct Field : nn::Module {
  nn::Linear hidden{this, "hidden", 18, 16}, output{this, "output", 16, 4};

  // points (B, P, 3) along each ray -> (B, 3)
  Var forward(Var points) override {
    const Var angles = flatten(unsqueeze(points, -1) * exp2(to(arange(3), DType::kF32)), -2);
    const Var h = output(relu(hidden(concat({sin(angles), cos(angles)}, -1))));
    const Var opacity = 1.0 - exp(-softplus(select(h, -1, 3)));
    const Var passes = cumprod(1.0 - opacity, 1);
    const Var arrives = concat({ones_like(slice(passes, 1, 0, 1)), slice(passes, 1, 0, -1)}, 1);
    return sum(unsqueeze(arrives * opacity, -1) * sigmoid(slice(h, -1, 0, 3)), {1});
  }
};

SmallModel MakeField() {
  auto model = std::make_shared<Field>();
  return {model,
          [=](Inputs& in, int64_t batch) {
            return (*model)(in.f32("x", {batch, 7, 3}));
          },
          [](Var colour, Inputs& in, int64_t batch) {
            return mse_loss(colour, in.f32("y", {batch, 3}));
          }};
}

}  // namespace

const std::map<std::string, SmallModel (*)()>& SensorArchitectures() {
  static const auto& models = *new std::map<std::string, SmallModel (*)()>{
      {"speech", MakeSpeech},
      {"looker", MakeLooker},
      {"video", MakeVideo},
      {"field", MakeField},
  };
  return models;
}

}  // namespace zg::testing
