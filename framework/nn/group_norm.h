// GroupNorm: normalises x (B, C, ...) in groups of C / groups channels; each group of a sample gets
// mean 0 and variance 1, then every channel is scaled by weight and shifted by bias, both (C)
// (arXiv 1803.08494). With as many groups as channels it is InstanceNorm.
#pragma once

#include <string>

#include "framework/nn/module.h"
#include "framework/nn/parameter.h"

namespace zg::nn {

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

}  // namespace zg::nn
