#include "framework/nn/conv.h"

#include <algorithm>
#include <cmath>

namespace zg::nn {
namespace {

// A division by zero groups is an error of the op, not one here.
int64_t OfGroup(int64_t channels, int64_t groups) {
  return groups < 1 ? channels : channels / groups;
}

// PyTorch's, for weights (outputs, inputs, ...).
Initializer UniformFor(const Shape& weight) {
  const int64_t fan_in = weight.num_elements() / std::max<int64_t>(1, weight.dim(0));
  return Initializer::Uniform(1.0 / std::sqrt(static_cast<double>(std::max<int64_t>(1, fan_in))));
}

}  // namespace

Conv2d::Conv2d(const Module* parent, const std::string& name, int64_t in, int64_t out, Size2 kernel,
               const ConvLayerOptions& options)
    : Module(parent, name),
      weight(this, "weight", {out, OfGroup(in, options.groups), kernel.height, kernel.width},
             options.weight.value_or(
                 UniformFor({out, OfGroup(in, options.groups), kernel.height, kernel.width}))),
      options_{options.stride, options.padding, options.dilation, options.groups} {
  if (options.has_bias) {
    bias.emplace(this, "bias", Shape{out}, options.bias.value_or(UniformFor(weight.shape())));
  }
}

Var Conv2d::forward(Var x) {
  const Var w = weight;  // C++ leaves the order of arguments open; that of the variables is ours
  return bias.has_value() ? conv2d(x, w, *bias, options_) : conv2d(x, w, options_);
}

ConvTranspose2d::ConvTranspose2d(const Module* parent, const std::string& name, int64_t in,
                                 int64_t out, Size2 kernel, const ConvLayerOptions& options)
    : Module(parent, name),
      weight(this, "weight", {in, OfGroup(out, options.groups), kernel.height, kernel.width},
             options.weight.value_or(
                 UniformFor({in, OfGroup(out, options.groups), kernel.height, kernel.width}))),
      options_{options.stride, options.padding, options.dilation, options.groups},
      output_padding_(options.output_padding) {
  if (options.has_bias) {
    bias.emplace(this, "bias", Shape{out}, options.bias.value_or(UniformFor(weight.shape())));
  }
}

Var ConvTranspose2d::forward(Var x) {
  const Var w = weight;
  return bias.has_value() ? conv_transpose2d(x, w, *bias, options_, output_padding_)
                          : conv_transpose2d(x, w, options_, output_padding_);
}

Conv1d::Conv1d(const Module* parent, const std::string& name, int64_t in, int64_t out,
               int64_t kernel, const Conv1dLayerOptions& options)
    : Module(parent, name),
      weight(this, "weight", {out, OfGroup(in, options.groups), kernel},
             options.weight.value_or(UniformFor({out, OfGroup(in, options.groups), kernel}))),
      options_{options.stride, options.padding, options.dilation, options.groups} {
  if (options.has_bias) {
    bias.emplace(this, "bias", Shape{out}, options.bias.value_or(UniformFor(weight.shape())));
  }
}

Var Conv1d::forward(Var x) {
  const Var w = weight;
  return bias.has_value() ? conv1d(x, w, *bias, options_) : conv1d(x, w, options_);
}

ConvTranspose1d::ConvTranspose1d(const Module* parent, const std::string& name, int64_t in,
                                 int64_t out, int64_t kernel, const Conv1dLayerOptions& options)
    : Module(parent, name),
      weight(this, "weight", {in, OfGroup(out, options.groups), kernel},
             options.weight.value_or(UniformFor({in, OfGroup(out, options.groups), kernel}))),
      options_{options.stride, options.padding, options.dilation, options.groups},
      output_padding_(options.output_padding) {
  if (options.has_bias) {
    bias.emplace(this, "bias", Shape{out}, options.bias.value_or(UniformFor(weight.shape())));
  }
}

Var ConvTranspose1d::forward(Var x) {
  const Var w = weight;
  return bias.has_value() ? conv_transpose1d(x, w, *bias, options_, output_padding_)
                          : conv_transpose1d(x, w, options_, output_padding_);
}

}  // namespace zg::nn
