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

template <typename Size>
ConvolutionOptions<Size> OptionsOf(const ConvolutionLayerOptions<Size>& options) {
  return {options.stride, options.padding, options.dilation, options.groups};
}

}  // namespace

Convolution::Convolution(const Module* parent, const std::string& name, const Shape& weight_shape,
                         const std::optional<Initializer>& initializer)
    : Module(parent, name),
      weight(this, "weight", weight_shape, initializer.value_or(UniformFor(weight_shape))) {}

void Convolution::AddBias(int64_t out, const std::optional<Initializer>& initializer) {
  bias.emplace(this, "bias", Shape{out}, initializer.value_or(UniformFor(weight.shape())));
}

Conv2d::Conv2d(const Module* parent, const std::string& name, int64_t in, int64_t out, Size2 kernel,
               const ConvLayerOptions& options)
    : Convolution(parent, name, {out, OfGroup(in, options.groups), kernel.height, kernel.width},
                  out, options),
      options_(OptionsOf(options)) {}

Var Conv2d::forward(Var x) {
  const Var w = weight;  // C++ leaves the order of arguments open; that of the variables is ours
  return bias.has_value() ? conv2d(x, w, *bias, options_) : conv2d(x, w, options_);
}

ConvTranspose2d::ConvTranspose2d(const Module* parent, const std::string& name, int64_t in,
                                 int64_t out, Size2 kernel, const ConvLayerOptions& options)
    : Convolution(parent, name, {in, OfGroup(out, options.groups), kernel.height, kernel.width},
                  out, options),
      options_(OptionsOf(options)),
      output_padding_(options.output_padding) {}

Var ConvTranspose2d::forward(Var x) {
  const Var w = weight;
  return bias.has_value() ? conv_transpose2d(x, w, *bias, options_, output_padding_)
                          : conv_transpose2d(x, w, options_, output_padding_);
}

Conv1d::Conv1d(const Module* parent, const std::string& name, int64_t in, int64_t out,
               int64_t kernel, const Conv1dLayerOptions& options)
    : Convolution(parent, name, {out, OfGroup(in, options.groups), kernel}, out, options),
      options_(OptionsOf(options)) {}

Var Conv1d::forward(Var x) {
  const Var w = weight;
  return bias.has_value() ? conv1d(x, w, *bias, options_) : conv1d(x, w, options_);
}

ConvTranspose1d::ConvTranspose1d(const Module* parent, const std::string& name, int64_t in,
                                 int64_t out, int64_t kernel, const Conv1dLayerOptions& options)
    : Convolution(parent, name, {in, OfGroup(out, options.groups), kernel}, out, options),
      options_(OptionsOf(options)),
      output_padding_(options.output_padding) {}

Var ConvTranspose1d::forward(Var x) {
  const Var w = weight;
  return bias.has_value() ? conv_transpose1d(x, w, *bias, options_, output_padding_)
                          : conv_transpose1d(x, w, options_, output_padding_);
}

Conv3d::Conv3d(const Module* parent, const std::string& name, int64_t in, int64_t out, Size3 kernel,
               const Conv3dLayerOptions& options)
    : Convolution(parent, name,
                  {out, OfGroup(in, options.groups), kernel.depth, kernel.height, kernel.width},
                  out, options),
      options_(OptionsOf(options)) {}

Var Conv3d::forward(Var x) {
  const Var w = weight;
  return bias.has_value() ? conv3d(x, w, *bias, options_) : conv3d(x, w, options_);
}

ConvTranspose3d::ConvTranspose3d(const Module* parent, const std::string& name, int64_t in,
                                 int64_t out, Size3 kernel, const Conv3dLayerOptions& options)
    : Convolution(parent, name,
                  {in, OfGroup(out, options.groups), kernel.depth, kernel.height, kernel.width},
                  out, options),
      options_(OptionsOf(options)),
      output_padding_(options.output_padding) {}

Var ConvTranspose3d::forward(Var x) {
  const Var w = weight;
  return bias.has_value() ? conv_transpose3d(x, w, *bias, options_, output_padding_)
                          : conv_transpose3d(x, w, options_, output_padding_);
}

}  // namespace zg::nn
