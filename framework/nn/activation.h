// Activation functions as modules, for Sequential; elsewhere call relu(x), gelu(x), ...
#pragma once

#include <string>

#include "framework/nn/functions.h"
#include "framework/nn/module.h"
#include "framework/nn/parameter.h"

namespace zg::nn {

// The module that calls a function of one Var.
template <Var (*kFunction)(Var)>
class Activation : public Module {
 public:
  using Module::Module;
  Var forward(Var x) override { return kFunction(x); }
};

using ReLU = Activation<relu>;
using SiLU = Activation<silu>;
using Sigmoid = Activation<sigmoid>;
using Tanh = Activation<tanh>;
using Softplus = Activation<softplus>;
using ReLU6 = Activation<relu6>;
using Hardsigmoid = Activation<hardsigmoid>;
using Hardswish = Activation<hardswish>;
using Mish = Activation<mish>;
using SELU = Activation<selu>;
using Softsign = Activation<softsign>;
using Tanhshrink = Activation<tanhshrink>;
using LogSigmoid = Activation<log_sigmoid>;

// The forms of GELU: the approximation by tanh, PyTorch's approximate="tanh", or the exact form by erf,
// PyTorch's default.
enum class GeluForm { kTanh, kErf };

class GELU : public Module {
 public:
  using Module::Module;
  GELU(const Module* parent, const std::string& name, GeluForm form)
      : Module(parent, name), form_(form) {}
  Var forward(Var x) override { return form_ == GeluForm::kTanh ? gelu(x) : gelu_erf(x); }

 private:
  GeluForm form_ = GeluForm::kTanh;
};

class LeakyReLU : public Module {
 public:
  LeakyReLU(const Module* parent, const std::string& name, double slope = 0.01)
      : Module(parent, name), slope_(slope) {}
  Var forward(Var x) override { return leaky_relu(x, slope_); }

 private:
  double slope_;
};

class ELU : public Module {
 public:
  ELU(const Module* parent, const std::string& name, double alpha = 1.0)
      : Module(parent, name), alpha_(alpha) {}
  Var forward(Var x) override { return elu(x, alpha_); }

 private:
  double alpha_;
};

// The slope below 0 is a parameter: one, or one for each channel.
class PReLU : public Module {
 public:
  PReLU(const Module* parent, const std::string& name, int64_t channels = 1, double initial = 0.25)
      : Module(parent, name), weight(this, "weight", {channels}, Initializer::Constant(initial)) {}
  Var forward(Var x) override { return prelu(x, weight); }

  Parameter weight;
};

}  // namespace zg::nn
