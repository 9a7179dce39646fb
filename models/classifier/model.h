// The model of OneFlow's worked example of ZeRO: Linear, ReLU, Linear, trained with cross_entropy.
#pragma once

#include "framework/nn/nn.h"

namespace zg::models {

struct ClassifierConfig {
  int64_t inputs = 256;
  int64_t hidden = 128;
  int64_t classes = 10;
};

struct Classifier : nn::Module {
  nn::Linear hidden;
  nn::Linear output;

  explicit Classifier(const ClassifierConfig& config = {})
      : hidden(this, "hidden", config.inputs, config.hidden),
        output(this, "output", config.hidden, config.classes) {}

  Var forward(Var x) override { return output(relu(hidden(x))); }  // (B, inputs) -> (B, classes)
};

}  // namespace zg::models
