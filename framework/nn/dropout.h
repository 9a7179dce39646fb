// Dropout: dropout(x, probability) of functions.h as a module; x in eval.
#pragma once

#include <string>

#include "framework/nn/functions.h"
#include "framework/nn/module.h"
#include "framework/nn/random.h"

namespace zg::nn {

class Dropout : public Module {
 public:
  Dropout(const Module* parent, const std::string& name, double probability = 0.5)
      : Module(parent, name), probability_(probability) {}

  Var forward(Var x) override { return dropout(x, probability_); }

 private:
  double probability_;
};

// Drops whole channels: x (B, C, ...), in training (arXiv 1411.4280).
class ChannelDropout : public Module {
 public:
  ChannelDropout(const Module* parent, const std::string& name, double probability = 0.5)
      : Module(parent, name), probability_(probability) {}

  Var forward(Var x) override {
    Dims dims;
    for (int64_t dim = 2; dim < x.shape().num_dims(); ++dim) dims.push_back(dim);
    return dims.empty()
               ? fail(InvalidArgument("got x {}, expected (B, C, ...)", x.shape().ToString()))
               : dropout_along(x, probability_, dims);
  }

 private:
  double probability_;
};

using Dropout1d = ChannelDropout;
using Dropout2d = ChannelDropout;
using Dropout3d = ChannelDropout;

}  // namespace zg::nn
