// MappedMemory: a range of pages from mmap, which the destructor unmaps. It holds arenas of the
// host.
#pragma once

#include <cstddef>
#include <cstdint>

#include "framework/base/status.h"

namespace zg {

class MappedMemory {
 public:
  MappedMemory() = default;
  MappedMemory(MappedMemory&& other) noexcept;
  MappedMemory& operator=(MappedMemory&& other) noexcept;
  ~MappedMemory();

  // Zeroed memory that only this process maps, in huge pages if it is large and the system has
  // them.
  static StatusOr<MappedMemory> Private(int64_t bytes);

  // Takes ownership of pages that are already mapped.
  static MappedMemory Adopt(void* data, int64_t bytes);

  std::byte* data() const { return data_; }
  int64_t bytes() const { return bytes_; }

 private:
  std::byte* data_ = nullptr;
  int64_t bytes_ = 0;
};

}  // namespace zg
