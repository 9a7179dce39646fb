// The model of PyTorch's recipe for its ZeroRedundancyOptimizer: a stack of equal Linear layers
// without activations between them, trained with mse_loss. 20 layers of 2000 have 80 million
// parameters and almost no activations.
#pragma once

#include "framework/nn/nn.h"

namespace zg::models {

struct Recipe : nn::Module {
  nn::Sequential layers{this, "layers"};

  explicit Recipe(int64_t depth = 20, int64_t width = 2000) {
    for (int64_t i = 0; i < depth; ++i) layers.add<nn::Linear>(width, width);
  }

  Var forward(Var x) override { return layers(x); }  // (B, width) -> (B, width)
};

}  // namespace zg::models
