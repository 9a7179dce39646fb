// The config.json of transformers' Llama and Qwen2, whose weights model.h reads as they are.
#pragma once

#include <string>

#include "framework/base/status.h"
#include "models/llama/model.h"

namespace zg::models {

// Of DIRECTORY/config.json. Error: all fields that our model has nothing for.
StatusOr<LlamaConfig> ReadLlamaConfig(const std::string& directory);

// What transformers needs to load a model of ours.
std::string LlamaConfigAsJson(const LlamaConfig& config);

}  // namespace zg::models
