// BatchNorm1d, BatchNorm2d, BatchNorm3d: normalise every channel of x (N, C), (N, C, L), (N, C, H, W)
// or (N, C, D, H, W) to mean 0 and variance 1, then scale by weight and shift by bias, both (C).
//
// Training uses the statistics of each micro-batch alone, so results do not depend on the number of
// ranks; eval uses the running ones. A step changes these to (1 - momentum) running + momentum (the
// mean over the step's micro-batches), with the unbiased variance. With one micro-batch per step
// that is what PyTorch does.
#pragma once

#include <string>

#include "framework/nn/buffer.h"
#include "framework/nn/constants.h"
#include "framework/nn/module.h"
#include "framework/nn/parameter.h"

namespace zg::nn {

struct BatchNormOptions {
  double epsilon = 1e-5;
  double momentum = 0.1;
  bool affine = true;  // false: it does not scale and shift, and has no use for weight and bias
};

class BatchNorm : public Module {
 public:
  // Error: another number of channels, or fewer dims than `min_dims` or more than `max_dims`; a momentum
  // outside of [0, 1].
  Var forward(Var x) override;

  Parameter weight;
  Parameter bias;
  Buffer running_mean;
  Buffer running_var;

 protected:
  BatchNorm(const Module* parent, const std::string& name, int64_t channels, int min_dims,
            int max_dims, const BatchNormOptions& options);

 private:
  Status Check(Var x) const;
  Var Train(Var x);
  Var Eval(Var x);
  Var Gamma() const { return options_.affine ? Var(weight) : ones({channels_}); }
  Var Beta() const { return options_.affine ? Var(bias) : zeros({channels_}); }

  int64_t channels_;
  int min_dims_;
  int max_dims_;
  BatchNormOptions options_;
};

class BatchNorm1d : public BatchNorm {
 public:
  BatchNorm1d(const Module* parent, const std::string& name, int64_t channels,
              const BatchNormOptions& options = {})
      : BatchNorm(parent, name, channels, 2, 3, options) {}
};

class BatchNorm2d : public BatchNorm {
 public:
  BatchNorm2d(const Module* parent, const std::string& name, int64_t channels,
              const BatchNormOptions& options = {})
      : BatchNorm(parent, name, channels, 4, 4, options) {}
};

class BatchNorm3d : public BatchNorm {
 public:
  BatchNorm3d(const Module* parent, const std::string& name, int64_t channels,
              const BatchNormOptions& options = {})
      : BatchNorm(parent, name, channels, 5, 5, options) {}
};

}  // namespace zg::nn
