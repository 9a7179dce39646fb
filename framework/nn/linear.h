// Linear: y = x weight^T + bias. x (..., in), weight (out, in), bias (out), y (..., out).
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "framework/nn/module.h"
#include "framework/nn/parameter.h"

namespace zg::nn {

struct LinearOptions {
  bool has_bias = true;
  // If not set: uniform in [-1/sqrt(in), 1/sqrt(in)), as in PyTorch.
  std::optional<Initializer> weight = std::nullopt;
  std::optional<Initializer> bias = std::nullopt;
};

class LoraAdapter;

class Linear : public Module {
 public:
  Linear(const Module* parent, const std::string& name, int64_t in, int64_t out,
         const LinearOptions& options = {});
  Var forward(Var x) override;

  Parameter weight;
  std::optional<Parameter> bias;
  std::shared_ptr<const LoraAdapter> adapter;  // adds to y (lora.h)
};

// y[o] = a weight[o] b + bias[o]: rows a (..., A) and b (..., B) -> (..., O); weight (O, A, B).
class Bilinear : public Module {
 public:
  Bilinear(const Module* parent, const std::string& name, int64_t a, int64_t b, int64_t out,
           bool has_bias = true);
  // Error: other numbers of channels, or different leading dims.
  Var operator()(Var a, Var b);

  Parameter weight;
  std::optional<Parameter> bias;

 protected:
  Var forward(Var x) override { return (*this)(x, x); }
};

}  // namespace zg::nn
