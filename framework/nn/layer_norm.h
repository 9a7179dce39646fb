// LayerNorm: normalises each row of x (..., channels) to mean 0 and variance 1, then scales by
// weight and adds bias, both (channels). RMSNorm: normalises it to a mean square of 1, then scales
// by weight, or 1 + weight. With several dims, such as {channels, height, width}, they are a row
// together. Without parameters: the function layer_norm(x).
#pragma once

#include <optional>
#include <string>

#include "framework/nn/constants.h"
#include "framework/nn/functions.h"
#include "framework/nn/module.h"
#include "framework/nn/parameter.h"

namespace zg::nn {

struct LayerNormOptions {
  double epsilon = 1e-5;
  bool has_bias = true;
};

class LayerNorm : public Module {
 public:
  LayerNorm(const Module* parent, const std::string& name, int64_t channels, double epsilon = 1e-5)
      : LayerNorm(parent, name, channels, LayerNormOptions{epsilon}) {}
  LayerNorm(const Module* parent, const std::string& name, int64_t channels,
            const LayerNormOptions& options)
      : LayerNorm(parent, name, Dims{channels}, options) {}
  LayerNorm(const Module* parent, const std::string& name, const Dims& dims,
            const LayerNormOptions& options = {})
      : Module(parent, name),
        weight(this, "weight", Shape(dims), Initializer::Ones()),
        epsilon_(options.epsilon) {
    if (options.has_bias) bias.emplace(this, "bias", Shape(dims), Initializer::Zeros());
  }

  Var forward(Var x) override {
    const Var gamma = weight;  // before bias: C++ leaves the order of arguments open
    return layer_norm(x, gamma, bias.has_value() ? Var(*bias) : zeros_like(gamma), epsilon_);
  }

  Parameter weight;
  std::optional<Parameter> bias;

 private:
  double epsilon_;
};

struct RMSNormOptions {
  double epsilon = 1e-6;
  bool scales_by_one_plus_weight = false;  // the weight then begins as zeros, as in Gemma
};

class RMSNorm : public Module {
 public:
  RMSNorm(const Module* parent, const std::string& name, int64_t channels, double epsilon = 1e-6)
      : RMSNorm(parent, name, channels, RMSNormOptions{epsilon}) {}
  RMSNorm(const Module* parent, const std::string& name, int64_t channels,
          const RMSNormOptions& options)
      : Module(parent, name),
        weight(this, "weight", {channels},
               options.scales_by_one_plus_weight ? Initializer::Zeros() : Initializer::Ones()),
        options_(options) {}

  Var forward(Var x) override {
    const Var gamma = weight;
    return rms_norm(x, options_.scales_by_one_plus_weight ? gamma + 1.0 : gamma, options_.epsilon);
  }

  Parameter weight;

 private:
  RMSNormOptions options_;
};

}  // namespace zg::nn
