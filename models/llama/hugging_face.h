// The config.json of transformers' Llama and Qwen2, whose weights model.h reads unchanged, and Mixtral,
// whose weights //tools:convert has to put together.
#pragma once

#include <string>

#include "framework/base/status.h"
#include "models/llama/model.h"

namespace zg::models {

// Reads DIRECTORY/config.json. Error: all fields that our model does not support.
StatusOr<LlamaConfig> ReadLlamaConfig(const std::string& directory);

// The text that transformers needs to load a model of ours.
std::string LlamaConfigAsJson(const LlamaConfig& config);

}  // namespace zg::models
