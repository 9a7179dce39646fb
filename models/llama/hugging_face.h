// The config.json of transformers' Llama, Mistral, Qwen2 and Qwen3, whose weights model.h reads
// unchanged, and of Mixtral and Qwen3-MoE, whose weights //tools:convert has to put together.
#pragma once

#include <string>
#include <string_view>

#include "framework/base/status.h"
#include "models/llama/model.h"

namespace zg::models {

// Reads DIRECTORY/config.json. Error: all fields that our model does not support.
StatusOr<LlamaConfig> ReadLlamaConfig(const std::string& directory);

// The one of transformers' models that these sizes and settings are of, as "model_type" names it.
std::string_view LlamaModelType(const LlamaConfig& config);

// The text that transformers needs to load a model of ours.
std::string LlamaConfigAsJson(const LlamaConfig& config);

}  // namespace zg::models
