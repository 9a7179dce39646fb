// The bytes before the data of a safetensors file with given tensors, and the position of each
// tensor's bytes. For writers: once the layout is known, several can fill one file at the same
// time.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "framework/base/status.h"
#include "framework/io/safetensors_dtype.h"

namespace zg {

struct TensorOfFile {
  std::string name;
  SafetensorsDType dtype = SafetensorsDType::kF32;
  std::vector<int64_t> shape;
};

struct SafetensorsLayout {
  std::string prefix;  // the header's length and its text; a multiple of 8 bytes
  // For each tensor, from the start of the data, which follows the prefix.
  std::vector<uint64_t> begin_bytes;
  std::vector<uint64_t> end_bytes;

  uint64_t file_bytes() const { return prefix.size() + (end_bytes.empty() ? 0 : end_bytes.back()); }
};

// Tensors follow each other in the given order. `metadata` is added to "format", which is always
// "pt". Errors: a duplicate name, a name that is reserved or not UTF-8, a size that overflows, a
// header longer than readers accept.
StatusOr<SafetensorsLayout> MakeSafetensorsLayout(
    const std::vector<TensorOfFile>& tensors, const std::map<std::string, std::string>& metadata);

}  // namespace zg
