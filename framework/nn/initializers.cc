#include "framework/nn/initializers.h"

#include <algorithm>
#include <cmath>

namespace zg::nn {
namespace {

// A tensor with fewer than two dims has no fans: 1.
double FanOf(const Shape& weight, Fan fan) {
  if (weight.num_dims() < 2) return 1.0;
  const int64_t other = weight.dim(fan == Fan::kIn ? 0 : 1);
  return static_cast<double>(weight.num_elements() / std::max<int64_t>(1, other));
}

double KaimingDeviation(const Shape& weight, Fan fan, double slope) {
  return std::sqrt(2.0 / (1.0 + slope * slope) / FanOf(weight, fan));
}

double XavierDeviation(const Shape& weight, double gain) {
  return gain * std::sqrt(2.0 / (FanOf(weight, Fan::kIn) + FanOf(weight, Fan::kOut)));
}

// Uniform with this standard deviation.
Initializer UniformOf(double deviation) { return Initializer::Uniform(std::sqrt(3.0) * deviation); }

}  // namespace

Initializer kaiming_normal(const Shape& weight, Fan fan, double slope) {
  return Initializer::Normal(KaimingDeviation(weight, fan, slope));
}
Initializer kaiming_uniform(const Shape& weight, Fan fan, double slope) {
  return UniformOf(KaimingDeviation(weight, fan, slope));
}
Initializer xavier_normal(const Shape& weight, double gain) {
  return Initializer::Normal(XavierDeviation(weight, gain));
}
Initializer xavier_uniform(const Shape& weight, double gain) {
  return UniformOf(XavierDeviation(weight, gain));
}

}  // namespace zg::nn
