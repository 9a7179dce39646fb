#include "framework/nn/linear.h"

#include <cmath>

#include "framework/nn/functions.h"
#include "framework/nn/lora.h"

namespace zg::nn {
namespace {

Initializer UniformFor(int64_t in) {
  return Initializer::Uniform(1.0 / std::sqrt(static_cast<double>(in)));
}

}  // namespace

Linear::Linear(const Module* parent, const std::string& name, int64_t in, int64_t out,
               const LinearOptions& options)
    : Module(parent, name),
      weight(this, "weight", {out, in}, options.weight.value_or(UniformFor(in))) {
  if (options.has_bias) {
    bias.emplace(this, "bias", Shape{out}, options.bias.value_or(UniformFor(in)));
  }
}

Var Linear::forward(Var x) {
  const Var w = weight;  // C++ leaves the order of arguments open; that of the variables is ours
  const Var y = bias.has_value() ? linear(x, w, *bias) : linear(x, w);
  return adapter == nullptr ? y : y + adapter->Difference(x);
}

}  // namespace zg::nn
