// ResNet for small images (He et al. 2015, arXiv 1512.03385, section 4.2; with the widths and names
// of torchvision): a 3x3 convolution, stages of basic blocks, each of which halves the image except
// the first, the average over its pixels, and a linear layer. Shapes: B batch, C channels of the
// image.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "framework/nn/nn.h"

namespace zg::models {

// The defaults are ResNet-18: 11.2 million parameters.
struct ResNetConfig {
  int64_t image_channels = 3;
  int64_t classes = 10;
  int64_t blocks = 2;  // per stage
  std::vector<int64_t> widths = {64, 128, 256, 512};
};

// 175 thousand parameters.
inline ResNetConfig SmallResNet() {
  ResNetConfig config;
  config.widths = {16, 32, 64};
  return config;
}

// No bias: the following normalisation has one.
inline nn::ConvLayerOptions ResNetConv(int64_t in, int64_t out, int64_t kernel, int64_t stride) {
  nn::ConvLayerOptions options;
  options.stride = stride;
  options.padding = kernel / 2;
  options.has_bias = false;
  options.weight = nn::kaiming_normal({out, in, kernel, kernel}, nn::Fan::kOut);
  return options;
}

struct ResNetConvNorm : nn::Module {
  nn::Conv2d conv;
  nn::BatchNorm2d norm;

  ResNetConvNorm(const nn::Module* parent, const std::string& name, int64_t in, int64_t out,
                 int64_t kernel, int64_t stride)
      : Module(parent, name),
        conv(this, "conv", in, out, kernel, ResNetConv(in, out, kernel, stride)),
        norm(this, "norm", out) {}

  Var forward(Var x) override { return norm(conv(x)); }
};

struct ResNetBlock : nn::Module {
  ResNetConvNorm first;
  ResNetConvNorm second;
  std::optional<ResNetConvNorm> shortcut;  // if the result has another shape than x

  ResNetBlock(const nn::Module* parent, const std::string& name, int64_t in, int64_t out,
              int64_t stride)
      : Module(parent, name),
        first(this, "first", in, out, 3, stride),
        second(this, "second", out, out, 3, 1) {
    if (stride != 1 || in != out) shortcut.emplace(this, "shortcut", in, out, 1, stride);
  }

  Var forward(Var x) override {
    const Var y = second(relu(first(x)));
    return relu(y + (shortcut.has_value() ? (*shortcut)(x) : x));
  }
};

struct ResNet : nn::Module {
  ResNetConvNorm stem;
  nn::ModuleList<ResNetBlock> blocks;
  nn::Linear output;

  explicit ResNet(const ResNetConfig& config = {})
      : stem(this, "stem", config.image_channels, config.widths.front(), 3, 1),
        blocks(this, "blocks"),
        output(this, "output", config.widths.back(), config.classes) {
    int64_t channels = config.widths.front();
    for (size_t stage = 0; stage < config.widths.size(); ++stage) {
      for (int64_t block = 0; block < config.blocks; ++block) {
        const int64_t stride = stage > 0 && block == 0 ? 2 : 1;
        blocks.emplace_back(channels, config.widths[stage], stride);
        channels = config.widths[stage];
      }
    }
  }

  // (B, C, H, W) -> (B, classes)
  Var forward(Var x) override {
    x = relu(stem(x));
    for (ResNetBlock& block : blocks) x = block(x);
    return output(mean(x, {2, 3}));
  }
};

}  // namespace zg::models
