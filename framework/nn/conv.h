// Convolutions as modules, named and initialised as in PyTorch: x (N, in, H, W) -> (N, out, OH, OW);
// the 1d ones: x (N, in, L); the 3d ones: x (N, in, D, H, W). Shapes of results: images.h and volumes.h.
#pragma once

#include <optional>
#include <string>

#include "framework/nn/images.h"
#include "framework/nn/module.h"
#include "framework/nn/parameter.h"
#include "framework/nn/volumes.h"

namespace zg::nn {

template <typename Size>
struct ConvolutionLayerOptions {
  Size stride = 1;
  Size padding = 0;
  Size dilation = 1;
  int64_t groups = 1;
  bool has_bias = true;
  Size output_padding = 0;  // only of transposed convolutions
  // If not set: uniform in [-b, b) with b = 1 / sqrt(inputs of an output element), as in PyTorch.
  std::optional<Initializer> weight = std::nullopt;
  std::optional<Initializer> bias = std::nullopt;
};
using ConvLayerOptions = ConvolutionLayerOptions<Size2>;
using Conv1dLayerOptions = ConvolutionLayerOptions<int64_t>;
using Conv3dLayerOptions = ConvolutionLayerOptions<Size3>;

// What all convolutions have.
class Convolution : public Module {
 public:
  Parameter weight;
  std::optional<Parameter> bias;  // (out)

 protected:
  template <typename Size>
  Convolution(const Module* parent, const std::string& name, const Shape& weight_shape, int64_t out,
              const ConvolutionLayerOptions<Size>& options)
      : Convolution(parent, name, weight_shape, options.weight) {
    if (options.has_bias) AddBias(out, options.bias);
  }

 private:
  Convolution(const Module* parent, const std::string& name, const Shape& weight_shape,
              const std::optional<Initializer>& initializer);
  void AddBias(int64_t out, const std::optional<Initializer>& initializer);
};

// weight (out, in / groups, KH, KW)
class Conv2d : public Convolution {
 public:
  Conv2d(const Module* parent, const std::string& name, int64_t in, int64_t out, Size2 kernel,
         const ConvLayerOptions& options = {});
  Var forward(Var x) override;

 private:
  ConvOptions options_;
};

// weight (in, out / groups, KH, KW)
class ConvTranspose2d : public Convolution {
 public:
  ConvTranspose2d(const Module* parent, const std::string& name, int64_t in, int64_t out,
                  Size2 kernel, const ConvLayerOptions& options = {});
  Var forward(Var x) override;

 private:
  ConvOptions options_;
  Size2 output_padding_;
};

// weight (out, in / groups, K)
class Conv1d : public Convolution {
 public:
  Conv1d(const Module* parent, const std::string& name, int64_t in, int64_t out, int64_t kernel,
         const Conv1dLayerOptions& options = {});
  Var forward(Var x) override;

 private:
  Conv1dOptions options_;
};

// weight (in, out / groups, K)
class ConvTranspose1d : public Convolution {
 public:
  ConvTranspose1d(const Module* parent, const std::string& name, int64_t in, int64_t out,
                  int64_t kernel, const Conv1dLayerOptions& options = {});
  Var forward(Var x) override;

 private:
  Conv1dOptions options_;
  int64_t output_padding_;
};

// weight (out, in / groups, KD, KH, KW)
class Conv3d : public Convolution {
 public:
  Conv3d(const Module* parent, const std::string& name, int64_t in, int64_t out, Size3 kernel,
         const Conv3dLayerOptions& options = {});
  Var forward(Var x) override;

 private:
  Conv3dOptions options_;
};

// weight (in, out / groups, KD, KH, KW)
class ConvTranspose3d : public Convolution {
 public:
  ConvTranspose3d(const Module* parent, const std::string& name, int64_t in, int64_t out,
                  Size3 kernel, const Conv3dLayerOptions& options = {});
  Var forward(Var x) override;

 private:
  Conv3dOptions options_;
  Size3 output_padding_;
};

}  // namespace zg::nn
