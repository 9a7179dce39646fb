// Activation functions as modules, for Sequential; elsewhere call relu(x), gelu(x) and
// silu(x).
#pragma once

#include "framework/nn/functions.h"
#include "framework/nn/module.h"

namespace zg::nn {

class ReLU : public Module {
 public:
  using Module::Module;
  Var forward(Var x) override { return relu(x); }
};

class GELU : public Module {
 public:
  using Module::Module;
  Var forward(Var x) override { return gelu(x); }
};

class SiLU : public Module {
 public:
  using Module::Module;
  Var forward(Var x) override { return silu(x); }
};

}  // namespace zg::nn
