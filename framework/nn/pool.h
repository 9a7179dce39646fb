// Pooling as modules: x (N, C, H, W) -> (N, C, OH, OW); the 3d ones: x (N, C, D, H, W).
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

class AdaptiveAvgPool2d : public Module {
 public:
  AdaptiveAvgPool2d(const Module* parent, const std::string& name, Size2 size)
      : Module(parent, name), size_(size) {}
  Var forward(Var x) override { return adaptive_avg_pool2d(x, size_); }

 private:
  Size2 size_;
};

}  // namespace zg::nn
