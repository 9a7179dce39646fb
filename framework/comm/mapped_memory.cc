#include "framework/comm/mapped_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace zg {

MappedMemory::MappedMemory(MappedMemory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

MappedMemory& MappedMemory::operator=(MappedMemory&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  MappedMemory old(std::move(other));
  return *this;
}

MappedMemory::~MappedMemory() {
  if (data_ != nullptr) munmap(data_, bytes_);
}

StatusOr<MappedMemory> MappedMemory::Private(int64_t bytes) {
  constexpr int64_t kHugeFromBytes = int64_t{16} << 20;
  const int64_t mapped_bytes = std::max<int64_t>(bytes, 1);
  void* data = mmap(nullptr, mapped_bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data == MAP_FAILED) {
    return FailedPrecondition("cannot map {} bytes of memory: {}", bytes, std::strerror(errno));
  }
  if (bytes >= kHugeFromBytes) madvise(data, mapped_bytes, MADV_HUGEPAGE);
  return Adopt(data, mapped_bytes);
}

MappedMemory MappedMemory::Adopt(void* data, int64_t bytes) {
  MappedMemory memory;
  memory.data_ = static_cast<std::byte*>(data);
  memory.bytes_ = bytes;
  return memory;
}

}  // namespace zg
