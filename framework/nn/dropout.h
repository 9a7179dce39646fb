// Dropout: dropout(x, probability) of functions.h as a module; x in eval.
#pragma once

#include <string>

#include "framework/nn/functions.h"
#include "framework/nn/module.h"

namespace zg::nn {

class Dropout : public Module {
 public:
  Dropout(const Module* parent, const std::string& name, double probability = 0.5)
      : Module(parent, name), probability_(probability) {}

  Var forward(Var x) override { return dropout(x, probability_); }

 private:
  double probability_;
};

}  // namespace zg::nn
