// Sizes of known Llamas by name, and the number of parameters of a size.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

#include "models/llama/model.h"

namespace zg::models {

struct LlamaPreset {
  std::string_view name;
  std::string_view doc;
  LlamaConfig config;
};

// The last four are those of the config.json of Llama-3-8B, Qwen2-0.5B, Qwen2-7B and Mixtral-8x7B.
inline const std::array<LlamaPreset, 5>& LlamaPresets() {
  static const std::array<LlamaPreset, 5> presets = {{
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
      {"mixtral-8x7b",
       "46.7G, of which a token uses 12.9G",
       {32, 32, 8, 4096, 14336, 32768, 32000, 1e-5, {.theta = 1000000.0}, false, false, {8, 2}}},
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
  const int64_t experts = config.mixture.experts;
  const int64_t mlp = std::max<int64_t>(1, experts) * 3 * channels * config.hidden;
  const int64_t layer = attention + mlp + experts * channels + 2 * channels;
  return config.layers * layer + channels + (config.tied ? 1 : 2) * config.vocabulary * channels;
}

}  // namespace zg::models
