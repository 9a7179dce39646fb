// The sizes of a convolution and its gradients, for the kernels of all devices.
#pragma once

#include <cstdint>

#include "framework/kernels/kernel.h"

namespace zg {

struct ConvShape {
  // For the tensors x (N, C, H, W), weight (O, C / groups, KH, KW) and y (N, O, OH, OW) of a node.
  ConvShape(const ir::Attributes& attributes, const Shape& x, const Shape& weight, const Shape& y)
      : batch(x.dim(0)),
        groups(attributes.Int("groups")),
        channels(weight.dim(1)),
        outputs(weight.dim(0) / groups) {
    for (int i = 0; i < 2; ++i) {
      in[i] = x.dim(2 + i);
      out[i] = y.dim(2 + i);
      kernel[i] = weight.dim(2 + i);
      stride[i] = out[i] == 1 ? 1 : attributes.Ints("stride")[i];  // so it is at most in[i]
      padding[i] = attributes.Ints("padding")[i];
      dilation[i] = attributes.Ints("dilation")[i];
    }
  }
  static ConvShape OfForward(const KernelSpec& spec) {
    return {spec.call.attributes, spec.call.inputs[0].shape, spec.call.inputs[1].shape,
            spec.outputs[0].shape};
  }
  static ConvShape OfGradInput(const KernelSpec& spec) {
    return {spec.call.attributes, spec.outputs[0].shape, spec.call.inputs[1].shape,
            spec.call.inputs[0].shape};
  }
  static ConvShape OfGradWeight(const KernelSpec& spec) {
    return {spec.call.attributes, spec.call.inputs[1].shape, spec.outputs[0].shape,
            spec.call.inputs[0].shape};
  }

  int64_t in_pixels() const { return in[0] * in[1]; }
  int64_t out_pixels() const { return out[0] * out[1]; }
  int64_t taps() const { return kernel[0] * kernel[1]; }

  int64_t batch;
  int64_t groups;
  int64_t channels;  // per group
  int64_t outputs;   // per group
  // Height and width.
  int64_t in[2];
  int64_t out[2];
  int64_t kernel[2];
  int64_t stride[2];
  int64_t padding[2];
  int64_t dilation[2];
};

}  // namespace zg
