// Convolutions as modules, named and initialised as in PyTorch: x (N, in, H, W) -> (N, out, OH, OW);
// the 1d ones: x (N, in, L). Shapes of weights and results: images.h.
#pragma once

#include <optional>
#include <string>

#include "framework/nn/images.h"
#include "framework/nn/module.h"
#include "framework/nn/parameter.h"

namespace zg::nn {

struct ConvLayerOptions {
  Size2 stride = 1;
  Size2 padding = 0;
  Size2 dilation = 1;
  int64_t groups = 1;
  bool has_bias = true;
  Size2 output_padding = 0;  // only for ConvTranspose2d
  // If not set: uniform in [-b, b) with b = 1 / sqrt(inputs of an output element), as in PyTorch.
  std::optional<Initializer> weight = std::nullopt;
  std::optional<Initializer> bias = std::nullopt;
};

class Conv2d : public Module {
 public:
  Conv2d(const Module* parent, const std::string& name, int64_t in, int64_t out, Size2 kernel,
         const ConvLayerOptions& options = {});
  Var forward(Var x) override;

  Parameter weight;  // (out, in / groups, KH, KW)
  std::optional<Parameter> bias;

 private:
  ConvOptions options_;
};

class ConvTranspose2d : public Module {
 public:
  ConvTranspose2d(const Module* parent, const std::string& name, int64_t in, int64_t out,
                  Size2 kernel, const ConvLayerOptions& options = {});
  Var forward(Var x) override;

  Parameter weight;  // (in, out / groups, KH, KW)
  std::optional<Parameter> bias;

 private:
  ConvOptions options_;
  Size2 output_padding_;
};

struct Conv1dLayerOptions {
  int64_t stride = 1;
  int64_t padding = 0;
  int64_t dilation = 1;
  int64_t groups = 1;
  bool has_bias = true;
  int64_t output_padding = 0;                        // only for ConvTranspose1d
  std::optional<Initializer> weight = std::nullopt;  // as in ConvLayerOptions
  std::optional<Initializer> bias = std::nullopt;
};

class Conv1d : public Module {
 public:
  Conv1d(const Module* parent, const std::string& name, int64_t in, int64_t out, int64_t kernel,
         const Conv1dLayerOptions& options = {});
  Var forward(Var x) override;

  Parameter weight;  // (out, in / groups, K)
  std::optional<Parameter> bias;

 private:
  Conv1dOptions options_;
};

class ConvTranspose1d : public Module {
 public:
  ConvTranspose1d(const Module* parent, const std::string& name, int64_t in, int64_t out,
                  int64_t kernel, const Conv1dLayerOptions& options = {});
  Var forward(Var x) override;

  Parameter weight;  // (in, out / groups, K)
  std::optional<Parameter> bias;

 private:
  Conv1dOptions options_;
  int64_t output_padding_;
};

}  // namespace zg::nn
