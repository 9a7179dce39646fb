// MappedMemory: a range of pages from mmap, which the destructor gives back. Arenas of the host lie
// in it.
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

  // Zeroed memory of this process alone, in huge pages where it is large and the system has them.
  static StatusOr<MappedMemory> Private(int64_t bytes);

  // Takes over pages that are mapped already.
  static MappedMemory Adopt(void* data, int64_t bytes);

  std::byte* data() const { return data_; }
  int64_t bytes() const { return bytes_; }

 private:
  std::byte* data_ = nullptr;
  int64_t bytes_ = 0;
};

}  // namespace zg
