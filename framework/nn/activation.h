// Activation functions as modules, for Sequential; elsewhere call relu(x) and gelu(x).
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

}  // namespace zg::nn
