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

class MaxPool3d : public Module {
 public:
  MaxPool3d(const Module* parent, const std::string& name, Size3 kernel,
            const Pool3dOptions& options = {})
      : Module(parent, name), kernel_(kernel), options_(options) {}
  Var forward(Var x) override { return max_pool3d(x, kernel_, options_); }

 private:
  Size3 kernel_;
  Pool3dOptions options_;
};

class AvgPool3d : public Module {
 public:
  AvgPool3d(const Module* parent, const std::string& name, Size3 kernel,
            const Pool3dOptions& options = {})
      : Module(parent, name), kernel_(kernel), options_(options) {}
  Var forward(Var x) override { return avg_pool3d(x, kernel_, options_); }

 private:
  Size3 kernel_;
  Pool3dOptions options_;
};

class MaxPool1d : public Module {
 public:
  MaxPool1d(const Module* parent, const std::string& name, int64_t kernel, int64_t stride = 0,
            int64_t padding = 0)  // a stride of 0 is that of the kernel
      : Module(parent, name),
        kernel_(kernel),
        stride_(stride == 0 ? kernel : stride),
        padding_(padding) {}
  Var forward(Var x) override { return max_pool1d(x, kernel_, stride_, padding_); }

 private:
  int64_t kernel_, stride_, padding_;
};

class AvgPool1d : public Module {
 public:
  AvgPool1d(const Module* parent, const std::string& name, int64_t kernel, int64_t stride = 0,
            int64_t padding = 0)
      : Module(parent, name),
        kernel_(kernel),
        stride_(stride == 0 ? kernel : stride),
        padding_(padding) {}
  Var forward(Var x) override { return avg_pool1d(x, kernel_, stride_, padding_); }

 private:
  int64_t kernel_, stride_, padding_;
};

class AdaptiveAvgPool1d : public Module {
 public:
  AdaptiveAvgPool1d(const Module* parent, const std::string& name, int64_t size)
      : Module(parent, name), size_(size) {}
  Var forward(Var x) override { return adaptive_avg_pool1d(x, size_); }

 private:
  int64_t size_;
};

class AdaptiveMaxPool2d : public Module {
 public:
  AdaptiveMaxPool2d(const Module* parent, const std::string& name, Size2 size)
      : Module(parent, name), size_(size) {}
  Var forward(Var x) override { return adaptive_max_pool2d(x, size_); }

 private:
  Size2 size_;
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

class AdaptiveAvgPool2d : public Module {
 public:
  AdaptiveAvgPool2d(const Module* parent, const std::string& name, Size2 size)
      : Module(parent, name), size_(size) {}
  Var forward(Var x) override { return adaptive_avg_pool2d(x, size_); }

 private:
  Size2 size_;
};

}  // namespace zg::nn
