// Sizes of known GPTs by name, and the number of parameters of a size.
#pragma once

#include <array>
#include <string_view>

#include "models/gpt/model.h"

namespace zg::models {

struct GptPreset {
  std::string_view name;
  std::string_view doc;
  GptConfig config;
};

// The last three have the parameter counts of table 1 of the ZeRO paper, within 0.5 %.
inline const std::array<GptPreset, 6>& GptPresets() {
  static const std::array<GptPreset, 6> presets = {{
      {"mini", "10.8M, single bytes", {6, 6, 384, 256, 256}},
      {"gpt2", "124M", {12, 12, 768, 1024, 50257}},
      {"gpt2-xl", "1.56G", {48, 25, 1600, 1024, 50257}},
      {"7.5b", "7.46G", {36, 32, 4096, 2048, 50257}},
      {"128b", "128G", {60, 104, 13312, 2048, 50257}},
      {"1t", "1.00T", {127, 160, 25600, 2048, 50257}},
  }};
  return presets;
}

// Null if there is none of that name.
inline const GptPreset* FindGptPreset(std::string_view name) {
  for (const GptPreset& preset : GptPresets()) {
    if (preset.name == name) return &preset;
  }
  return nullptr;
}

// The number of parameters of Gpt(config), by formula: 12 C^2 + 13 C per block, the embeddings and
// the last norm.
inline int64_t NumGptParameters(const GptConfig& config) {
  const int64_t channels = config.channels;
  return config.layers * (12 * channels + 13) * channels +
         (config.vocabulary + config.context + 2) * channels;
}

}  // namespace zg::models
