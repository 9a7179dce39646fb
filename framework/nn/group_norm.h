// GroupNorm: normalises x (B, C, ...) in groups of C / groups channels; each group of a sample gets
// mean 0 and variance 1, then every channel is scaled by weight and shifted by bias, both (C)
// (arXiv 1803.08494). InstanceNorm is the same with as many groups as channels (arXiv 1607.08022).
#pragma once

#include <optional>
#include <string>

#include "framework/nn/dims.h"
#include "framework/nn/functions.h"
#include "framework/nn/module.h"
#include "framework/nn/parameter.h"

namespace zg {

// The normalised x alone. Error: channels that are not divisible by the groups.
Var group_norm(Var x, int64_t groups, double epsilon = 1e-5);
Var instance_norm(Var x, double epsilon = 1e-5);  // each channel of a sample by itself

namespace nn {

class GroupNorm : public Module {
 public:
  GroupNorm(const Module* parent, const std::string& name, int64_t groups, int64_t channels,
            double epsilon = 1e-5);

  // Error: another number of channels, or one that is not divisible by the groups.
  Var forward(Var x) override;

  Parameter weight;
  Parameter bias;

 private:
  int64_t groups_;
  int64_t channels_;
  double epsilon_;
};

// For x (B, C, T), (B, C, H, W) and (B, C, D, H, W); with `is_affine` each channel is scaled and
// shifted, too, by the parameters weight and bias. Keeps no running statistics.
template <int kNumDims>
class InstanceNorm : public Module {
 public:
  InstanceNorm(const Module* parent, const std::string& name, int64_t channels,
               bool is_affine = false, double epsilon = 1e-5)
      : Module(parent, name), channels_(channels), epsilon_(epsilon) {
    if (!is_affine) return;
    weight.emplace(this, "weight", Shape{channels}, Initializer::Ones());
    bias.emplace(this, "bias", Shape{channels}, Initializer::Zeros());
  }
  // Error: another number of dims or channels.
  Var forward(Var x) override {
    if (x.shape().num_dims() != kNumDims || x.dim(1) != channels_) {
      return fail(InvalidArgument("got x {}, expected {} dims and {} channels in dim 1",
                                  x.shape().ToString(), kNumDims, channels_));
    }
    const Var normal = instance_norm(x, epsilon_);
    if (!weight) return normal;
    const Var gamma = PerChannel(*weight, kNumDims);
    const Var beta = PerChannel(*bias, kNumDims);
    return normal * gamma + beta;
  }

  std::optional<Parameter> weight, bias;

 private:
  int64_t channels_;
  double epsilon_;
};

using InstanceNorm1d = InstanceNorm<3>;
using InstanceNorm2d = InstanceNorm<4>;
using InstanceNorm3d = InstanceNorm<5>;

}  // namespace nn

}  // namespace zg
