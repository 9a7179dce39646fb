// Pooling and rescaling as modules: x (N, C, H, W) -> (N, C, OH, OW); the 3d ones: x (N, C, D, H, W); the
// 1d ones: x (N, C, T).
#pragma once

#include <string>

#include "framework/nn/images.h"
#include "framework/nn/module.h"
#include "framework/nn/volumes.h"

namespace zg::nn {

class MaxPool2d : public Module {
 public:
  MaxPool2d(const Module* parent, const std::string& name, Size2 kernel,
            const MaxPoolOptions& options = {})
      : Module(parent, name), kernel_(kernel), options_(options) {}
  Var forward(Var x) override { return max_pool2d(x, kernel_, options_); }

 private:
  Size2 kernel_;
  MaxPoolOptions options_;
};

class AvgPool2d : public Module {
 public:
  AvgPool2d(const Module* parent, const std::string& name, Size2 kernel,
            const AvgPoolOptions& options = {})
      : Module(parent, name), kernel_(kernel), options_(options) {}
  Var forward(Var x) override { return avg_pool2d(x, kernel_, options_); }

 private:
  Size2 kernel_;
  AvgPoolOptions options_;
};

template <Var (*kPool)(Var, Size3, const Pool3dOptions&)>
class Pool3d : public Module {
 public:
  Pool3d(const Module* parent, const std::string& name, Size3 kernel,
         const Pool3dOptions& options = {})
      : Module(parent, name), kernel_(kernel), options_(options) {}
  Var forward(Var x) override { return kPool(x, kernel_, options_); }

 private:
  Size3 kernel_;
  Pool3dOptions options_;
};

using MaxPool3d = Pool3d<max_pool3d>;
using AvgPool3d = Pool3d<avg_pool3d>;

template <Var (*kPool)(Var, int64_t kernel, int64_t stride, int64_t padding)>
class Pool1d : public Module {
 public:
  Pool1d(const Module* parent, const std::string& name, int64_t kernel, int64_t stride = 0,
         int64_t padding = 0)  // a stride of 0 is that of the kernel
      : Module(parent, name),
        kernel_(kernel),
        stride_(stride == 0 ? kernel : stride),
        padding_(padding) {}
  Var forward(Var x) override { return kPool(x, kernel_, stride_, padding_); }

 private:
  int64_t kernel_, stride_, padding_;
};

using MaxPool1d = Pool1d<max_pool1d>;
using AvgPool1d = Pool1d<avg_pool1d>;

template <Var (*kPool)(Var, Size2)>
class AdaptivePool2d : public Module {
 public:
  AdaptivePool2d(const Module* parent, const std::string& name, Size2 size)
      : Module(parent, name), size_(size) {}
  Var forward(Var x) override { return kPool(x, size_); }

 private:
  Size2 size_;
};

using AdaptiveMaxPool2d = AdaptivePool2d<adaptive_max_pool2d>;
using AdaptiveAvgPool2d = AdaptivePool2d<adaptive_avg_pool2d>;

class AdaptiveAvgPool1d : public Module {
 public:
  AdaptiveAvgPool1d(const Module* parent, const std::string& name, int64_t size)
      : Module(parent, name), size_(size) {}
  Var forward(Var x) override { return adaptive_avg_pool1d(x, size_); }

 private:
  int64_t size_;
};

class PixelShuffle : public Module {
 public:
  PixelShuffle(const Module* parent, const std::string& name, int64_t factor)
      : Module(parent, name), factor_(factor) {}
  Var forward(Var x) override { return pixel_shuffle(x, factor_); }

 private:
  int64_t factor_;
};

// Images `factor` times as high and wide.
class Upsample : public Module {
 public:
  Upsample(const Module* parent, const std::string& name, int64_t factor,
           Interpolation mode = Interpolation::kNearest, bool align_corners = false)
      : Module(parent, name), factor_(factor), mode_(mode), align_corners_(align_corners) {}
  // Error: not (N, C, H, W).
  Var forward(Var x) override {
    if (x.shape().num_dims() != 4) {
      return fail(InvalidArgument("got x {}, expected (N, C, H, W)", x.shape().ToString()));
    }
    return interpolate(x, {x.dim(2) * factor_, x.dim(3) * factor_}, mode_, align_corners_);
  }

 private:
  int64_t factor_;
  Interpolation mode_;
  bool align_corners_;
};

}  // namespace zg::nn
