// LayerNorm: normalises each row of x (..., channels) to mean 0 and variance 1, then scales by
// weight and adds bias, both (channels). RMSNorm: normalises it to a mean square of 1, then scales
// by weight. Without parameters: the function layer_norm(x).
#pragma once

#include <string>

#include "framework/nn/functions.h"
#include "framework/nn/module.h"
#include "framework/nn/parameter.h"

namespace zg::nn {

class LayerNorm : public Module {
 public:
  LayerNorm(const Module* parent, const std::string& name, int64_t channels, double epsilon = 1e-5)
      : Module(parent, name),
        weight(this, "weight", {channels}, Initializer::Ones()),
        bias(this, "bias", {channels}, Initializer::Zeros()),
        epsilon_(epsilon) {}

  Var forward(Var x) override {
    const Var gamma = weight;  // before bias: C++ leaves the order of arguments open
    return layer_norm(x, gamma, bias, epsilon_);
  }

  Parameter weight;
  Parameter bias;

 private:
  double epsilon_;
};

class RMSNorm : public Module {
 public:
  RMSNorm(const Module* parent, const std::string& name, int64_t channels, double epsilon = 1e-6)
      : Module(parent, name),
        weight(this, "weight", {channels}, Initializer::Ones()),
        epsilon_(epsilon) {}

  Var forward(Var x) override { return rms_norm(x, weight, epsilon_); }

  Parameter weight;

 private:
  double epsilon_;
};

}  // namespace zg::nn
