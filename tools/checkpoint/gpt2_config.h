// The config.json of a Hugging Face GPT-2: reading checks for settings that our models::Gpt would
// compute differently; writing gives transformers the fields that it needs.
#pragma once

#include <cstdint>
#include <string>

#include "framework/base/status.h"
#include "framework/io/safetensors_dtype.h"

namespace zg::checkpoint_tool {

struct Gpt2Config {
  int64_t layers = 0;
  int64_t heads = 0;
  int64_t channels = 0;
  int64_t context = 0;
  int64_t vocabulary = 0;
  double dropout = 0;
  SafetensorsDType dtype = SafetensorsDType::kF32;
};

// Checks `path` against the sizes of the tensors, except the heads, and returns the heads. Error:
// all fields that differ from them, or that our model does not support.
StatusOr<int64_t> HeadsOfGpt2Config(const std::string& path, const Gpt2Config& of_tensors);

std::string Gpt2ConfigAsJson(const Gpt2Config& config);

}  // namespace zg::checkpoint_tool
