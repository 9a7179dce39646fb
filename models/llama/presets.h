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

// All but the first are those of the config.json of the models of these names.
inline const std::array<LlamaPreset, 9>& LlamaPresets() {
  static const std::array<LlamaPreset, 9> presets = {{
      {"mini", "9.6M, single bytes", {}},
      {"llama3-8b",
       "8.03G",
       {.layers = 32,
        .heads = 32,
        .key_heads = 8,
        .channels = 4096,
        .hidden = 14336,
        .context = 8192,
        .vocabulary = 128256,
        .rotary = {.theta = 500000.0}}},
      {"mistral-7b",
       "7.24G",
       {.layers = 32,
        .heads = 32,
        .key_heads = 8,
        .channels = 4096,
        .hidden = 14336,
        .context = 32768,
        .vocabulary = 32000,
        .window = 4096}},
      {"qwen2-0.5b",
       "494M",
       {.layers = 24,
        .heads = 14,
        .key_heads = 2,
        .channels = 896,
        .hidden = 4864,
        .context = 32768,
        .vocabulary = 151936,
        .epsilon = 1e-6,
        .rotary = {.theta = 1000000.0},
        .qkv_bias = true,
        .tied = true}},
      {"qwen2-7b",
       "7.62G",
       {.layers = 28,
        .heads = 28,
        .key_heads = 4,
        .channels = 3584,
        .hidden = 18944,
        .context = 32768,
        .vocabulary = 152064,
        .epsilon = 1e-6,
        .rotary = {.theta = 1000000.0},
        .qkv_bias = true}},
      {"qwen3-0.6b",
       "596M",
       {.layers = 28,
        .heads = 16,
        .key_heads = 8,
        .channels = 1024,
        .hidden = 3072,
        .context = 40960,
        .vocabulary = 151936,
        .epsilon = 1e-6,
        .rotary = {.theta = 1000000.0},
        .tied = true,
        .channels_per_head = 128,
        .has_head_norms = true}},
      {"qwen3-8b",
       "8.19G",
       {.layers = 36,
        .heads = 32,
        .key_heads = 8,
        .channels = 4096,
        .hidden = 12288,
        .context = 40960,
        .vocabulary = 151936,
        .epsilon = 1e-6,
        .rotary = {.theta = 1000000.0},
        .has_head_norms = true}},
      {"mixtral-8x7b",
       "46.7G, of which a token uses 12.9G",
       {.layers = 32,
        .heads = 32,
        .key_heads = 8,
        .channels = 4096,
        .hidden = 14336,
        .context = 32768,
        .vocabulary = 32000,
        .rotary = {.theta = 1000000.0},
        .mixture = {8, 2}}},
      {"qwen3-30b-a3b",
       "30.5G, of which a token uses 3.3G",
       {.layers = 48,
        .heads = 32,
        .key_heads = 4,
        .channels = 2048,
        .hidden = 768,
        .context = 40960,
        .vocabulary = 151936,
        .epsilon = 1e-6,
        .rotary = {.theta = 1000000.0},
        .mixture = {128, 8},
        .channels_per_head = 128,
        .has_head_norms = true}},
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
  const int64_t q = config.heads * config.head_size();
  const int64_t k = config.key_heads * config.head_size();
  const int64_t attention = 2 * channels * (q + k) + (config.qkv_bias ? q + 2 * k : 0) +
                            (config.has_head_norms ? 2 * config.head_size() : 0);
  const int64_t experts = config.mixture.experts;
  const int64_t mlp = std::max<int64_t>(1, experts) * 3 * channels * config.hidden;
  const int64_t layer = attention + mlp + experts * channels + 2 * channels;
  return config.layers * layer + channels + (config.tied ? 1 : 2) * config.vocabulary * channels;
}

}  // namespace zg::models
