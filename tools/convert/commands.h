// The commands of //tools:convert for models of transformers. The returned text reports the
// conversion.
#pragma once

#include <optional>
#include <string>

#include "framework/base/status.h"
#include "framework/io/safetensors_dtype.h"

namespace zg::convert_tool {

struct FromOptions {
  std::string from;  // a directory with config.json and model.safetensors, or its index and shards
  std::string to;    // a file for --init
  std::optional<SafetensorsDType> dtype = {};  // none: the dtype of each tensor
  bool may_replace = false;
};

// Writes one file with the names and layouts of our model.
StatusOr<std::string> ConvertFrom(const FromOptions& options);

struct ToOptions {
  std::string from;  // a checkpoint, or a file for --init
  std::string to;    // a directory for transformers
  // A directory of theirs with the model's config.json, which is copied. If it has weights, the
  // output has their files, names and dtypes.
  std::string like = {};
  std::string preset = {};  // instead of `like`: sizes of one of our programs, "llama/mini"
  std::optional<SafetensorsDType> dtype = {};  // none: as in `like`, or the dtype of each tensor
  bool may_replace = false;
};

// Writes config.json and model.safetensors, or shards and their index as in `like`.
StatusOr<std::string> ConvertTo(const ToOptions& options);

}  // namespace zg::convert_tool
