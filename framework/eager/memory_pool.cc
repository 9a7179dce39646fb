#include "framework/eager/memory_pool.h"

#include <algorithm>
#include <deque>
#include <iterator>
#include <list>
#include <new>
#include <unordered_map>
#include <utility>

#include "framework/base/format.h"

namespace zg::eager {
namespace {

constexpr int64_t kAlignment = 64;

// On the host not as from Device, which maps pages, zeroed, for each.
StatusOr<DeviceBytes> NewBlock(Device& device, int64_t bytes) {
  if (!device.is_host()) return device.Allocate(bytes);
  constexpr std::align_val_t alignment{kAlignment};
  auto* const block = static_cast<std::byte*>(::operator new[](bytes, alignment, std::nothrow));
  if (block == nullptr)
    return FailedPrecondition("{} are needed, and not free", FormatExactBytes(bytes));
  return DeviceBytes(block, [](std::byte* own) { ::operator delete[](own, alignment); });
}

}  // namespace

struct MemoryPool::Blocks {
  struct Unused {
    int64_t size;
    DeviceBytes block;
  };

  // A block of the size; null: none is unused.
  DeviceBytes Find(int64_t size) {
    const auto found = by_size.find(size);
    if (found == by_size.end()) return nullptr;
    const auto last = found->second.back();
    DeviceBytes block = std::move(last->block);
    Erase(last);
    return block;
  }

  void Add(int64_t size, DeviceBytes block) {
    unused.push_back({size, std::move(block)});
    by_size[size].push_back(std::prev(unused.end()));
    unused_bytes += size;
    const int64_t most = std::max(always_kept_bytes, 2 * most_used_bytes);
    while (unused_bytes > most) Erase(unused.begin());
  }

  void Erase(std::list<Unused>::iterator one) {
    const auto of_size = by_size.find(one->size);
    auto& blocks = of_size->second;  // in their order: it is the first or the last
    if (blocks.back() == one) {
      blocks.pop_back();
    } else {
      blocks.pop_front();
    }
    if (blocks.empty()) by_size.erase(of_size);
    unused_bytes -= one->size;
    unused.erase(one);
  }

  int64_t always_kept_bytes = 0;
  std::list<Unused> unused;  // in the order in which they came back
  std::unordered_map<int64_t, std::deque<std::list<Unused>::iterator>> by_size;
  int64_t unused_bytes = 0;
  int64_t used_bytes = 0;
  int64_t most_used_bytes = 0;
};

MemoryPool::MemoryPool(Device* device, int64_t always_kept_bytes)
    : device_(*device), blocks_(std::make_shared<Blocks>()) {
  blocks_->always_kept_bytes = always_kept_bytes;
}

int64_t MemoryPool::unused_bytes() const { return blocks_->unused_bytes; }

StatusOr<std::shared_ptr<std::byte>> MemoryPool::Take(int64_t bytes) {
  const int64_t size = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  DeviceBytes block = blocks_->Find(size);
  if (block == nullptr) {
    StatusOr<DeviceBytes> made = NewBlock(device_, size);
    if (!made.ok()) {
      while (!blocks_->unused.empty()) blocks_->Erase(blocks_->unused.begin());
      made = NewBlock(device_, size);
    }
    ZG_ASSIGN_OR_RETURN(block, std::move(made));
  }
  blocks_->used_bytes += size;
  blocks_->most_used_bytes = std::max(blocks_->most_used_bytes, blocks_->used_bytes);
  const auto give_back = block.get_deleter();
  return std::shared_ptr<std::byte>(block.release(),
                                    [blocks = blocks_, size, give_back](std::byte* memory) {
                                      blocks->used_bytes -= size;
                                      blocks->Add(size, DeviceBytes(memory, give_back));
                                    });
}

}  // namespace zg::eager
