// MemoryPool: memory of the host that is used again and again, as an eager session's values come and
// go in about the same sizes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace zg::eager {

class MemoryPool {
 public:
  MemoryPool();

  // 64-byte aligned; contents undefined. It goes back to the pool with its last owner, and to the
  // system with the pool and the last owner.
  std::shared_ptr<std::byte> Take(int64_t bytes);

 private:
  struct Blocks;
  std::shared_ptr<Blocks> blocks_;
};

}  // namespace zg::eager
