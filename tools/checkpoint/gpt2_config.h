// The config.json of a Hugging Face GPT-2: read for what would compute something else than our
// models::Gpt does, written for what transformers needs.
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

// Checks `path` against the sizes of the tensors, all but the heads, and returns the heads. Error:
// everything that differs from them, or that our model does not do.
StatusOr<int64_t> HeadsOfGpt2Config(const std::string& path, const Gpt2Config& of_tensors);

std::string Gpt2ConfigAsJson(const Gpt2Config& config);

}  // namespace zg::checkpoint_tool
