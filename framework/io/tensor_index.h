// TensorIndex: the file of each tensor in a sharded safetensors checkpoint,
// NAME.safetensors.index.json.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "framework/base/status.h"

namespace zg {

struct TensorIndex {
  uint64_t total_bytes = 0;                         // of all tensors
  std::map<std::string, std::string> file_by_name;  // key: the tensor
};

std::string TensorIndexAsJson(const TensorIndex& index);

// Errors: the file is missing or malformed, a duplicate name, a file outside the index's directory.
StatusOr<TensorIndex> ReadTensorIndex(const std::string& path);

}  // namespace zg
