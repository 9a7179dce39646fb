// Safetensors files for tests of readers of other programs' weights.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "framework/io/safetensors_dtype.h"

namespace zg::testing {

struct StoredTensor {
  SafetensorsDType dtype = SafetensorsDType::kF32;
  std::vector<int64_t> shape;
  std::string bytes;
};

using StoredTensors = std::map<std::string, StoredTensor>;

StoredTensors ReadStored(const std::string& path);
void WriteStored(const std::string& path, const StoredTensors& tensors);

// Writes two shards and their index into the directory.
void WriteSharded(const std::string& directory, const StoredTensors& tensors);

// F32, with the values first, first + 1, ...
StoredTensor Counting(std::vector<int64_t> shape, float first = 0.0f);

// The same values in F32.
StoredTensor Widened(const StoredTensor& tensor);

// The same F32 values in another type; rounded.
StoredTensor Rounded(const StoredTensor& tensor, SafetensorsDType dtype);

}  // namespace zg::testing
