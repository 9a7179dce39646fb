// MemoryPool: memory of a device that is reused, because an eager session's values come and go in
// about the same sizes. Where sizes always change, such as the lengths of texts, the blocks that were
// unused longest return to the system.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "framework/base/status.h"
#include "framework/device/device.h"

namespace zg::eager {

class MemoryPool {
 public:
  // Keeps at most twice as many unused bytes as were ever in use at once, or always_kept_bytes if that
  // is more. The device must outlive all blocks.
  explicit MemoryPool(Device* device, int64_t always_kept_bytes = int64_t{64} << 20);

  // 64-byte aligned; contents undefined. The memory returns to the pool when its last owner is
  // gone, and to the system when the pool is gone, too. Error: the device has too little memory, also
  // without the unused blocks.
  StatusOr<std::shared_ptr<std::byte>> Take(int64_t bytes);

  int64_t unused_bytes() const;

 private:
  struct Blocks;
  Device& device_;
  std::shared_ptr<Blocks> blocks_;
};

}  // namespace zg::eager
