// SharedMemory: pages that the processes of one host share, without a name in the file system. The
// owner makes a memfd; a peer opens it through /proc/<pid>/fd/<fd> and maps it. Compared with files
// in /dev/shm (and MPI's shared windows), it has no limit of its own (containers give /dev/shm 64
// MB), and a killed rank leaves nothing behind, because the pages live only as long as somebody
// maps them.
//
//   ZG_ASSIGN_OR_RETURN(OwnedSharedMemory memory, OwnedSharedMemory::Create("arena", bytes));
//   ... send memory.address() to the peers ...
//   ZG_ASSIGN_OR_RETURN(MappedMemory peers_view, MapPeer(address, /*writable=*/false));
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/base/status.h"
#include "framework/comm/mapped_memory.h"

namespace zg {

// The address with which a peer finds the memory. Trivially copyable: sent as bytes.
struct SharedMemoryAddress {
  int64_t pid = 0;
  int64_t fd = 0;
  int64_t bytes = 0;
  uint64_t token = 0;  // random; also at the end of the memory, to recognise it
};

class OwnedSharedMemory {
 public:
  OwnedSharedMemory() = default;
  OwnedSharedMemory(OwnedSharedMemory&& other) noexcept;
  OwnedSharedMemory& operator=(OwnedSharedMemory&& other) noexcept;
  ~OwnedSharedMemory();

  // Zeroed pages. All are allocated now, so that too little memory is an error here, not a signal
  // later.
  static StatusOr<OwnedSharedMemory> Create(const std::string& label, int64_t bytes);

  std::byte* data() const { return memory_.data(); }
  const SharedMemoryAddress& address() const { return address_; }

  // No peer can map it from now on; existing mappings remain.
  void CloseToNewPeers();

 private:
  MappedMemory memory_;
  SharedMemoryAddress address_;
  int fd_ = -1;
};

// Maps the memory of a peer on this host.
StatusOr<MappedMemory> MapPeer(const SharedMemoryAddress& address, bool writable);

// Bytes of these mappings that are resident in this process (Rss in /proc/self/smaps).
int64_t ResidentBytes(const std::vector<MappedMemory>& mappings);

}  // namespace zg
