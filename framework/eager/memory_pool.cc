#include "framework/eager/memory_pool.h"

#include <map>
#include <new>
#include <vector>

namespace zg::eager {
namespace {

constexpr int64_t kAlignment = 64;

struct Free {
  void operator()(std::byte* block) const {
    ::operator delete[](block, std::align_val_t(kAlignment));
  }
};
using Block = std::unique_ptr<std::byte[], Free>;

Block NewBlock(int64_t bytes) {
  return Block(static_cast<std::byte*>(::operator new[](bytes, std::align_val_t(kAlignment))));
}

}  // namespace

struct MemoryPool::Blocks {
  std::map<int64_t, std::vector<Block>> unused;  // by size
};

MemoryPool::MemoryPool() : blocks_(std::make_shared<Blocks>()) {}

std::shared_ptr<std::byte> MemoryPool::Take(int64_t bytes) {
  const int64_t size = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  std::vector<Block>& unused = blocks_->unused[size];
  Block block;
  if (unused.empty()) {
    block = NewBlock(size);
  } else {
    block = std::move(unused.back());
    unused.pop_back();
  }
  return {block.release(), [blocks = blocks_, size](std::byte* memory) {
            blocks->unused[size].emplace_back(memory);
          }};
}

}  // namespace zg::eager
