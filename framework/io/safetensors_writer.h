// Writes a safetensors file as a stream: tensors come from memory or, chunk by chunk, from a
// callback, so that a value need not be whole anywhere. The file appears under its name complete or
// not at all.
//
//   ZG_RETURN_IF_ERROR(WriteSafetensors(
//       "model.safetensors", {{"wte.weight", SafetensorsDType::kF32, {50257, 768}, wte.data()}}));
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "framework/base/status.h"
#include "framework/io/safetensors_dtype.h"
#include "framework/io/sha256.h"

namespace zg {

// Fills `chunk` with the bytes [offset_bytes, offset_bytes + size_bytes) of a tensor. The writer
// asks for them in order, from 0 to the tensor's end, at most kSafetensorsChunkBytes at a time.
using TensorSource =
    std::function<Status(uint64_t offset_bytes, uint8_t* chunk, size_t size_bytes)>;

constexpr size_t kSafetensorsChunkBytes = size_t{1} << 20;

struct TensorToWrite {
  std::string name;
  SafetensorsDType dtype = SafetensorsDType::kF32;
  std::vector<int64_t> shape;
  const void* data = nullptr;     // little-endian, row-major; read during the call
  TensorSource source = nullptr;  // used when `data` is null
};

struct SafetensorsWriteOptions {
  std::map<std::string, std::string> metadata;  // in addition to "format", which is always "pt"
  Sha256* digest = nullptr;                     // receives every byte of the file
};

// Order in the file: larger dtypes first, then by name, so that all data is aligned. On an error
// (including one of a source) the temporary file is removed and an older file at `path` is
// untouched.
Status WriteSafetensors(const std::string& path, std::vector<TensorToWrite> tensors,
                        const SafetensorsWriteOptions& options = {});

}  // namespace zg
