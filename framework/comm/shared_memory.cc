#include "framework/comm/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <utility>

#include "framework/comm/available_memory.h"

namespace zg {
namespace {

constexpr int64_t kPageBytes = 4096;

// The user's bytes in whole pages, then one page with the token.
int64_t TokenOffset(int64_t bytes) { return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes; }
int64_t MappedBytes(int64_t bytes) { return TokenOffset(bytes) + kPageBytes; }

class FileDescriptor {
 public:
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  ~FileDescriptor() {
    if (fd_ >= 0) close(fd_);
  }
  int get() const { return fd_; }
  int Release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

Status CannotMapPeer(const SharedMemoryAddress& address, std::string_view why) {
  return FailedPrecondition(
      "cannot map the memory of process {} (/proc/{}/fd/{}, {} bytes): {}; the ranks of one host "
      "must "
      "run as the same user and see each other's processes. Set ZG_COMM=messages to exchange "
      "tensors "
      "by MPI messages instead",
      address.pid, address.pid, address.fd, address.bytes, why);
}

}  // namespace

OwnedSharedMemory::OwnedSharedMemory(OwnedSharedMemory&& other) noexcept
    : memory_(std::move(other.memory_)),
      address_(std::exchange(other.address_, {})),
      fd_(std::exchange(other.fd_, -1)) {}

OwnedSharedMemory& OwnedSharedMemory::operator=(OwnedSharedMemory&& other) noexcept {
  std::swap(memory_, other.memory_);
  std::swap(address_, other.address_);
  std::swap(fd_, other.fd_);
  OwnedSharedMemory old(std::move(other));
  return *this;
}

OwnedSharedMemory::~OwnedSharedMemory() { CloseToNewPeers(); }

void OwnedSharedMemory::CloseToNewPeers() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

StatusOr<OwnedSharedMemory> OwnedSharedMemory::Create(const std::string& label, int64_t bytes) {
  const int64_t mapped_bytes = MappedBytes(bytes);
  const auto error = [&](std::string_view step) {
    return FailedPrecondition("cannot allocate {} bytes of shared memory ({}): {}", bytes, step,
                              std::strerror(errno));
  };
  // Checked first, because fallocate would continue until the system kills processes.
  ZG_ASSIGN_OR_RETURN(const AvailableMemory available, ReadAvailableMemory());
  ZG_RETURN_IF_ERROR(CheckMemoryFor(mapped_bytes, 1, available));
  FileDescriptor fd(memfd_create(("zerograph " + label).c_str(), MFD_CLOEXEC));
  if (fd.get() < 0) return error("memfd_create");
  if (ftruncate(fd.get(), mapped_bytes) != 0) return error("ftruncate");
  while (fallocate(fd.get(), 0, 0, mapped_bytes) != 0) {
    if (errno != EINTR) return error("fallocate");
  }
  void* data = mmap(nullptr, mapped_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (data == MAP_FAILED) return error("mmap");

  OwnedSharedMemory memory;
  memory.memory_ = MappedMemory::Adopt(data, mapped_bytes);
  madvise(data, mapped_bytes, MADV_HUGEPAGE);  // A hint: the kernel may be configured not to.
  memory.address_ = {getpid(), fd.get(), bytes, 0};
  memory.fd_ = fd.Release();
  if (getrandom(&memory.address_.token, sizeof(uint64_t), 0) != sizeof(uint64_t)) {
    return error("getrandom");
  }
  std::memcpy(memory.data() + TokenOffset(bytes), &memory.address_.token, sizeof(uint64_t));
  return memory;
}

StatusOr<MappedMemory> MapPeer(const SharedMemoryAddress& address, bool writable) {
  const std::string path = fmt::format("/proc/{}/fd/{}", address.pid, address.fd);
  // In another PID namespace the number may belong to another process, and the file may be
  // anything, such as a pipe.
  const int flags = (writable ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
  const FileDescriptor fd(open(path.c_str(), flags));
  if (fd.get() < 0) return CannotMapPeer(address, std::strerror(errno));
  const int64_t mapped_bytes = MappedBytes(address.bytes);
  struct stat file;
  if (fstat(fd.get(), &file) != 0) return CannotMapPeer(address, std::strerror(errno));
  if (!S_ISREG(file.st_mode) || file.st_size != mapped_bytes) {
    return CannotMapPeer(address, "the file is not the peer's memory");
  }
  const int protection = writable ? PROT_READ | PROT_WRITE : PROT_READ;
  void* data = mmap(nullptr, mapped_bytes, protection, MAP_SHARED, fd.get(), 0);
  if (data == MAP_FAILED) return CannotMapPeer(address, std::strerror(errno));
  MappedMemory memory = MappedMemory::Adopt(data, mapped_bytes);
  if (std::memcmp(memory.data() + TokenOffset(address.bytes), &address.token, sizeof(uint64_t)) !=
      0) {
    return CannotMapPeer(address, "the memory does not hold the peer's token");
  }
  return memory;
}

int64_t ResidentBytes(const std::vector<MappedMemory>& mappings) {
  if (mappings.empty()) return 0;
  std::ifstream smaps("/proc/self/smaps");
  int64_t total = 0;
  bool is_counted = false;
  for (std::string line; std::getline(smaps, line);) {
    uintptr_t begin = 0, end = 0;
    int64_t kibibytes = 0;
    if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR " ", &begin, &end) == 2) {
      // The kernel may have split a mapping, or merged two neighbours.
      is_counted = std::any_of(mappings.begin(), mappings.end(), [&](const MappedMemory& memory) {
        const auto address = reinterpret_cast<uintptr_t>(memory.data());
        return address < end && begin < address + memory.bytes();
      });
    } else if (is_counted && std::sscanf(line.c_str(), "Rss: %" SCNd64, &kibibytes) == 1) {
      total += kibibytes * 1024;
    }
  }
  return total;
}

}  // namespace zg
