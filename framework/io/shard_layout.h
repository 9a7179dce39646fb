// ShardLayout: the distribution of tensors over the safetensors files of a checkpoint. It depends
// only on the tensors, so every rank computes the same one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/status.h"
#include "framework/io/safetensors_layout.h"
#include "framework/io/tensor_index.h"

namespace zg {

struct ShardFile {
  std::string name;
  SafetensorsLayout layout;
};

// The position of a tensor's first byte.
struct TensorPlace {
  int shard = 0;
  uint64_t offset_bytes = 0;  // in the file
};

struct ShardLayout {
  std::vector<ShardFile> files;
  std::vector<TensorPlace> places;  // by tensor
  TensorIndex index;
};

// Fills one file after the other with the tensors, in the given order, up to `max_shard_bytes` of
// data; a larger tensor has a file of its own. `part` as in ShardName.
StatusOr<ShardLayout> MakeShardLayout(std::string_view part,
                                      const std::vector<TensorOfFile>& tensors,
                                      uint64_t max_shard_bytes);

}  // namespace zg
