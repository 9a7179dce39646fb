// Embedding: looks up rows of a table. ids (...) i64 in [0, rows), weight (rows, channels),
// result (..., channels).
#pragma once

#include <string>

#include "framework/nn/functions.h"
#include "framework/nn/module.h"
#include "framework/nn/parameter.h"

namespace zg::nn {

class Embedding : public Module {
 public:
  // `std`: standard deviation of the initial values.
  Embedding(const Module* parent, const std::string& name, int64_t rows, int64_t channels,
            double std = 1.0)
      : Module(parent, name), weight(this, "weight", {rows, channels}, Initializer::Normal(std)) {}

  Var forward(Var ids) override { return embedding(ids, weight); }

  Parameter weight;
};

}  // namespace zg::nn
