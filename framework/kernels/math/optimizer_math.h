// One element of every optimizer's update, as kernels of all devices compute it, like torch.optim.
// A gradient is multiplied by `gradient`; a factor of 1 changes no bit of it.
#pragma once

#include <cmath>

#include "framework/base/host_device.h"

namespace zg {

struct SgdFactors {
  float gradient;
  float lr;
  float weight_decay;
  float momentum;
};

ZG_HOST_DEVICE ZG_INLINE float SgdStep(float p, float g, const SgdFactors& f) {
  return p - f.lr * (f.gradient * g + f.weight_decay * p);
}

struct SgdResult {
  float p;
  float m;
};

ZG_HOST_DEVICE ZG_INLINE SgdResult SgdMomentumStep(float p, float g, float m, const SgdFactors& f) {
  const float momentum = f.momentum * m + (f.gradient * g + f.weight_decay * p);
  return {p - f.lr * momentum, momentum};
}

ZG_HOST_DEVICE ZG_INLINE SgdResult SgdNesterovStep(float p, float g, float m, const SgdFactors& f) {
  const float gradient = f.gradient * g + f.weight_decay * p;
  const float momentum = f.momentum * m + gradient;
  return {p - f.lr * (gradient + f.momentum * momentum), momentum};
}

struct AdamAttributes {
  double lr;
  double beta1;
  double beta2;
  double epsilon;
  double weight_decay;
  bool decoupled;
};

struct AdamFactors {
  float gradient;
  float decay;         // of the parameter itself: 1 - lr * weight_decay if decoupled, else 1
  float weight_decay;  // added to the gradient: 0 if decoupled
  float beta2;
  float one_minus_beta1;
  float one_minus_beta2;
  float epsilon;
  float inverse_correction2;  // 1 / sqrt(1 - beta2^step)
  float step_size;            // lr / (1 - beta1^step)
};

// `gradient` and `step` come from the update's control, `lr_factor` from the schedule.
ZG_HOST_DEVICE inline AdamFactors MakeAdamFactors(const AdamAttributes& a, double lr_factor,
                                                  float gradient, double step) {
  const double lr = a.lr * lr_factor;
  AdamFactors f;
  f.gradient = gradient;
  f.decay = static_cast<float>(a.decoupled ? 1.0 - lr * a.weight_decay : 1.0);
  f.weight_decay = static_cast<float>(a.decoupled ? 0.0 : a.weight_decay);
  f.beta2 = static_cast<float>(a.beta2);
  f.one_minus_beta1 = static_cast<float>(1.0 - a.beta1);
  f.one_minus_beta2 = static_cast<float>(1.0 - a.beta2);
  f.epsilon = static_cast<float>(a.epsilon);
  f.inverse_correction2 = static_cast<float>(1.0 / std::sqrt(1.0 - std::pow(a.beta2, step)));
  f.step_size = static_cast<float>(lr / (1.0 - std::pow(a.beta1, step)));
  return f;
}

struct AdamResult {
  float p;
  float m;
  float v;
};

struct AdamElement {
  float p;
  float g;
  float m;
  float v;
};

ZG_HOST_DEVICE ZG_INLINE AdamResult AdamStep(const AdamElement& e, const AdamFactors& f) {
  const float p = e.p * f.decay;
  const float g = f.gradient * e.g + f.weight_decay * p;
  const float m = e.m + f.one_minus_beta1 * (g - e.m);
  const float v = f.beta2 * e.v + f.one_minus_beta2 * g * g;
  const float denominator = std::sqrt(v) * f.inverse_correction2 + f.epsilon;
  return {p - f.step_size * m / denominator, m, v};
}

}  // namespace zg
