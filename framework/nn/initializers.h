// Initial values by the shape of a weight, as in torch.nn.init. A weight is (outputs, inputs, ...),
// as in Linear and Conv2d: fan_in is inputs and fan_out is outputs, each times the elements of the
// further dims.
//
//   nn::ConvLayerOptions options;
//   options.weight = nn::kaiming_normal({64, 3, 3, 3});
//   nn::Conv2d conv(parent, "conv", 3, 64, 3, options);
#pragma once

#include <cstdint>

#include "framework/ir/initializer.h"
#include "framework/tensor/shape.h"

namespace zg::nn {

enum class Fan { kIn, kOut };

// Preserves the variance of activations through layers followed by leaky_relu of this slope; 0:
// relu (arXiv 1502.01852). The deviation is sqrt(2 / (1 + slope^2) / fan).
Initializer kaiming_normal(const Shape& weight, Fan fan = Fan::kIn, double slope = 0.0);
Initializer kaiming_uniform(const Shape& weight, Fan fan = Fan::kIn, double slope = 0.0);

// Glorot and Bengio 2010: the deviation is gain sqrt(2 / (fan_in + fan_out)).
Initializer xavier_normal(const Shape& weight, double gain = 1.0);
Initializer xavier_uniform(const Shape& weight, double gain = 1.0);

}  // namespace zg::nn
