// How a checkpoint is saved.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

namespace zg {

struct SaveOptions {
  uint64_t max_shard_bytes = uint64_t{2} << 30;  // per file, unless a single tensor is larger
  int keep = 0;                                  // number of checkpoints to keep, including this
                                                 // one; 0: all
  // Called on every rank when all ranks have reached a point of the save: "created", "written",
  // "hashed", "described", "published". For tests that abort there.
  std::function<void(std::string_view point)> at_point = nullptr;
};

}  // namespace zg
