// Muon's update of one element, and a matrix's learning rate, as kernels of all devices compute
// them: like torch.optim.Muon, in f32.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "framework/base/host_device.h"

namespace zg {

struct MuonOptions {
  double lr;
  double weight_decay;
  float one_minus_momentum;
  bool nesterov;
  bool match_rms_adamw;
  float epsilon;
  // X becomes a X + (b G + c G^2) X with the Gram matrix G = X X^T.
  float a, b, c;
};

// The factor of a matrix's step relative to lr.
inline double MuonScale(bool match_rms_adamw, int64_t rows, int64_t columns) {
  const auto height = static_cast<double>(rows), width = static_cast<double>(columns);
  if (match_rms_adamw) return 0.2 * std::sqrt(std::max(height, width));
  return std::sqrt(std::max(1.0, height / width));
}

struct MuonFactors {
  float decay;  // of the parameter: 1 - lr weight_decay
  float rate;   // of the orthogonal step
};

ZG_HOST_DEVICE inline MuonFactors MuonFactorsOf(const MuonOptions& o, double lr_factor,
                                                double scale) {
  const double lr = o.lr * lr_factor;
  return {static_cast<float>(1.0 - lr * o.weight_decay), static_cast<float>(lr * scale)};
}

struct MuonMomentum {
  float m;
  float direction;  // the matrix to be made orthogonal
};

ZG_HOST_DEVICE ZG_INLINE MuonMomentum MuonMomentumStep(float g, float m, float one_minus_momentum,
                                                       bool nesterov) {
  const float next = m + one_minus_momentum * (g - m);
  return {next, nesterov ? next + one_minus_momentum * (g - next) : next};
}

ZG_HOST_DEVICE ZG_INLINE float MuonNext(float p, float x, const MuonFactors& f) {
  return p * f.decay - f.rate * x;
}

}  // namespace zg
