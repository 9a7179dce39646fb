// Sizes of known Llamas by name, and the number of parameters of a size.
#pragma once

#include <array>
#include <string_view>

#include "models/llama/model.h"

namespace zg::models {

struct LlamaPreset {
  std::string_view name;
  std::string_view doc;
  LlamaConfig config;
};

// The last three are those of the config.json of Llama-3-8B, Qwen2-0.5B and Qwen2-7B.
inline const std::array<LlamaPreset, 4>& LlamaPresets() {
  static const std::array<LlamaPreset, 4> presets = {{
      {"mini", "9.6M, single bytes", {}},
      {"llama3-8b",
       "8.03G",
       {32, 32, 8, 4096, 14336, 8192, 128256, 1e-5, {.theta = 500000.0}, false, false}},
      {"qwen2-0.5b",
       "494M",
       {24, 14, 2, 896, 4864, 32768, 151936, 1e-6, {.theta = 1000000.0}, true, true}},
      {"qwen2-7b",
       "7.62G",
       {28, 28, 4, 3584, 18944, 32768, 152064, 1e-6, {.theta = 1000000.0}, true, false}},
  }};
  return presets;
}

// Null if there is none of that name.
inline const LlamaPreset* FindLlamaPreset(std::string_view name) {
  for (const LlamaPreset& preset : LlamaPresets()) {
    if (preset.name == name) return &preset;
  }
  return nullptr;
}

// The number of parameters of Llama(config), by formula.
inline int64_t NumLlamaParameters(const LlamaConfig& config) {
  const int64_t channels = config.channels;
  const int64_t key_channels = channels / config.heads * config.key_heads;
  const int64_t attention = 2 * channels * channels + 2 * channels * key_channels +
                            (config.qkv_bias ? channels + 2 * key_channels : 0);
  const int64_t layer = attention + 3 * channels * config.hidden + 2 * channels;
  return config.layers * layer + channels + (config.tied ? 1 : 2) * config.vocabulary * channels;
}

}  // namespace zg::models
