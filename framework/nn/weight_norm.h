// Weights that are normalised wherever they are read (Parameter::reads_as), as by PyTorch's
// weight_norm and spectral_norm of torch.nn.utils. Call these on layers before their first use.
#pragma once

#include "framework/nn/module.h"
#include "framework/nn/parameter.h"

namespace zg::nn {

// weight = g v / |v| with a norm and a gain g for each element of dim `dim`, the outputs of linear and
// convolution layers (arXiv 1602.07868). v is the parameter itself, and g a new one, "weight_g", with the
// other dims of size 1. g begins with the norms that v has on average (1 for values of a file). Error, where the weight is read:
// no such dim.
void weight_norm(const Module& layer, Parameter& weight, int64_t dim = 0);

struct SpectralNormOptions {
  int64_t iterations = 1;  // of the power method in a training function
  double epsilon = 1e-12;
};
// weight / sigma, where sigma is an estimate of the largest singular value of the weight as a matrix of
// dim 0 by the other dims (arXiv 1802.05957). The singular vectors are buffers, "weight_u" and "weight_v",
// which each training step improves; they begin with random directions (PyTorch's after 15 iterations), so
// that the estimate is too small in the first steps. Error, where the weight is read: fewer than 1 or more
// than 1000 iterations; an epsilon that is negative or not finite.
void spectral_norm(const Module& layer, Parameter& weight, const SpectralNormOptions& options = {});

// The same for a layer's member `weight`.
template <typename Layer>
void weight_norm(Layer& layer, int64_t dim = 0) {
  weight_norm(layer, layer.weight, dim);
}
template <typename Layer>
void spectral_norm(Layer& layer, const SpectralNormOptions& options = {}) {
  spectral_norm(layer, layer.weight, options);
}

}  // namespace zg::nn
