// MemoryPool: host memory that is reused, because an eager session's values come and go in about
// the same sizes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace zg::eager {

class MemoryPool {
 public:
  MemoryPool();

  // 64-byte aligned; contents undefined. The memory returns to the pool when its last owner is
  // gone, and to the system when the pool is gone, too.
  std::shared_ptr<std::byte> Take(int64_t bytes);

 private:
  struct Blocks;
  std::shared_ptr<Blocks> blocks_;
};

}  // namespace zg::eager
