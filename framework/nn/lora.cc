#include "framework/nn/lora.h"

#include <cmath>

#include "framework/nn/functions.h"
#include "framework/nn/trace.h"

namespace zg::nn {
namespace {

int64_t InputsOf(const Linear& layer) { return layer.weight.shape().dim(1); }
int64_t OutputsOf(const Linear& layer) { return layer.weight.shape().dim(0); }

}  // namespace

LoraAdapter::LoraAdapter(const Linear& layer, const LoraOptions& options)
    : a_(&layer, "lora_A.weight", {options.rank, InputsOf(layer)},
         Initializer::Uniform(1.0 / std::sqrt(static_cast<double>(InputsOf(layer))))),
      b_(&layer, "lora_B.weight", {OutputsOf(layer), options.rank}, Initializer::Zeros()),
      scale_(options.alpha / static_cast<double>(options.rank)) {}

Var LoraAdapter::Difference(Var x) const {
  const Var a = a_;  // C++ leaves the order of arguments open; that of the variables is ours
  const Var b = b_;
  if (!std::isfinite(scale_)) {
    return Trace::Of("LoRA").Fail(
        InvalidArgument("LoRA: got an alpha / rank of {}, expected a finite number", scale_));
  }
  return scale(linear(linear(x, a), b), scale_);
}

void Lora::adapt(Linear& layer) {
  if (layer.adapter != nullptr) return;
  layer.weight.freeze();
  if (layer.bias.has_value()) layer.bias->freeze();
  auto adapter = std::make_shared<const LoraAdapter>(layer, options_);
  layer.adapter = adapter;
  adapters_.push_back(std::move(adapter));
}

}  // namespace zg::nn
