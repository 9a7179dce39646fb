// Mamba (Gu and Dao, arXiv 2312.00752): a language model without attention. Each layer mixes tokens
// by a short convolution and by a linear recurrence per channel, whose decay and input depend on the
// token. Parameters have the names and layouts of transformers' MambaForCausalLM, so their files can
// be loaded. Trained with cross_entropy(model(tokens), next_tokens). Shapes: B batch, T time, C
// channels, D inner channels, N states of each, V vocabulary.
#pragma once

#include <cmath>
#include <vector>

#include "framework/nn/nn.h"

namespace zg::models {

// The defaults are a model of 2.0 million parameters for single bytes.
struct MambaConfig {
  int64_t layers = 4;
  int64_t channels = 256;
  int64_t inner = 512;
  int64_t states = 16;
  int64_t kernel = 4;  // tokens that the convolution sees
  int64_t rank = 16;   // of the step sizes' projection
  int64_t vocabulary = 256;
  double epsilon = 1e-5;
  bool conv_bias = true;
};

struct MambaMixer : nn::Module {
  MambaConfig config;
  nn::Linear in_proj;
  nn::Conv1d conv1d;
  nn::Linear x_proj;
  nn::Linear dt_proj;
  nn::Parameter A_log;  // (D, N)
  nn::Parameter D;
  nn::Linear out_proj;

  MambaMixer(const nn::Module* parent, const std::string& name, const MambaConfig& config)
      : Module(parent, name),
        config(config),
        in_proj(this, "in_proj", config.channels, 2 * config.inner, {.has_bias = false}),
        conv1d(
            this, "conv1d", config.inner, config.inner, config.kernel,
            {.groups = config.inner, .has_bias = config.conv_bias, .bias = Initializer::Zeros()}),
        x_proj(this, "x_proj", config.inner, config.rank + 2 * config.states, {.has_bias = false}),
        // Step sizes, the softplus of this, begin between 0.001 and 0.1.
        dt_proj(this, "dt_proj", config.rank, config.inner,
                {true, Initializer::Uniform(1 / std::sqrt(static_cast<double>(config.rank))),
                 Initializer::Uniform(Log(0.001), Log(0.1))}),
        A_log(this, "A_log", {config.inner, config.states}, Initializer::Row(LogOfStates(config))),
        D(this, "D", {config.inner}, Initializer::Ones()),
        out_proj(this, "out_proj", config.inner, config.channels, {.has_bias = false}) {}

  Var forward(Var x) override {  // (B, T, C)
    const std::vector<Var> halves = chunk(in_proj(x), 2, -1);
    const Var seen = transpose(with_earlier_tokens(halves[0], config.kernel - 1), 1, 2);
    const Var u = silu(transpose(conv1d(seen), 1, 2));  // (B, T, D)
    const std::vector<Var> of_token =
        split_sizes(x_proj(u), {config.rank, config.states, config.states}, -1);
    const Var step = softplus(dt_proj(of_token[0]));
    const Var y = selective_scan(u, step, -exp(A_log), of_token[1], of_token[2]);
    return out_proj((y + D * u) * silu(halves[1]));
  }

 private:
  // Rounded to f32, because C libraries differ in a logarithm's last bit.
  static double Log(double x) { return static_cast<float>(std::log(x)); }
  static std::vector<double> LogOfStates(const MambaConfig& config) {
    std::vector<double> logs;
    for (int64_t n = 1; n <= config.states; ++n) logs.push_back(Log(static_cast<double>(n)));
    return logs;
  }
};

struct MambaLayer : nn::Module {
  nn::RMSNorm norm;
  MambaMixer mixer;

  MambaLayer(const nn::Module* parent, const std::string& name, const MambaConfig& config)
      : Module(parent, name),
        norm(this, "norm", config.channels, config.epsilon),
        mixer(this, "mixer", config) {}

  Var forward(Var x) override { return x + mixer(norm(x)); }
};

struct MambaBackbone : nn::Module {
  nn::Embedding embeddings;  // (V, C), also the output matrix
  nn::ModuleList<MambaLayer> layers;
  nn::RMSNorm norm_f;

  MambaBackbone(const nn::Module* parent, const std::string& name, const MambaConfig& config)
      : Module(parent, name),
        embeddings(this, "embeddings", config.vocabulary, config.channels, 0.02),
        layers(this, "layers", config.layers, config),
        norm_f(this, "norm_f", config.channels, config.epsilon) {}

  Var forward(Var tokens) override {
    Var x = embeddings(tokens);
    for (MambaLayer& layer : layers) x = layer(x);
    return norm_f(x);
  }
};

struct Mamba : nn::Module {
  MambaBackbone backbone;

  explicit Mamba(const MambaConfig& config = {}) : backbone(this, "backbone", config) {}

  // tokens (B, T) i64 -> logits (B, T, V), for any T.
  Var forward(Var tokens) override { return linear(backbone(tokens), backbone.embeddings.weight); }
};

}  // namespace zg::models
