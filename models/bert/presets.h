// Sizes of known BERTs by name, and the number of parameters of a size.
#pragma once

#include <array>
#include <string_view>

#include "models/bert/model.h"

namespace zg::models {

struct BertPreset {
  std::string_view name;
  std::string_view doc;
  BertConfig config;
};

// The last two are those of the config.json of bert-base-uncased and bert-large-uncased.
inline const std::array<BertPreset, 4>& BertPresets() {
  static const std::array<BertPreset, 4> presets = {{
      {"tiny", "0.45M, single bytes", {2, 2, 128, 512, 32}},
      {"mini", "3.3M, single bytes", {}},
      {"bert-base", "110M", {12, 12, 768, 3072, 512, 30522, 2, 1e-12, 0.1, 0.1}},
      {"bert-large", "335M", {24, 16, 1024, 4096, 512, 30522, 2, 1e-12, 0.1, 0.1}},
  }};
  return presets;
}

// Null if there is none of that name.
inline const BertPreset* FindBertPreset(std::string_view name) {
  for (const BertPreset& preset : BertPresets()) {
    if (preset.name == name) return &preset;
  }
  return nullptr;
}

// The number of parameters of Bert(config), by formula: embeddings, layers, and the head without
// its tied matrix.
inline int64_t NumBertParameters(const BertConfig& config) {
  const int64_t channels = config.channels;
  const int64_t embeddings =
      (config.vocabulary + config.context + config.token_types + 2) * channels;
  const int64_t layer = 4 * (channels + 1) * channels + 2 * config.hidden * channels +
                        config.hidden + channels + 4 * channels;
  const int64_t head = (channels + 1) * channels + 2 * channels + config.vocabulary;
  return embeddings + config.layers * layer + head;
}

}  // namespace zg::models
