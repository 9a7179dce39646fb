#include "framework/comm/mpi_shared.h"

#include <time.h>

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "framework/comm/available_memory.h"
#include "framework/comm/mapped_memory.h"
#include "framework/comm/peer_memory_collectives.h"
#include "framework/comm/shared_memory.h"

namespace zg {
namespace {

std::string ToBytes(const SharedMemoryAddress& address) {
  return std::string(reinterpret_cast<const char*>(&address), sizeof(address));
}

SharedMemoryAddress FromBytes(const std::string& bytes) {
  SharedMemoryAddress address;
  if (bytes.size() == sizeof(address)) std::memcpy(&address, bytes.data(), sizeof(address));
  return address;
}

class MpiSharedCommunicator : public PeerMemoryCollectives {
 public:
  // `own_control` on rank 0 and `peer_control` on the others is what `control_block` lies in.
  MpiSharedCommunicator(MpiComm comm, double timeout_s, ControlBlock* control_block,
                        OwnedSharedMemory own_control, MappedMemory peer_control)
      : PeerMemoryCollectives(control_block, comm.rank(), comm.size(), timeout_s),
        comm_(std::move(comm)),
        timeout_s_(timeout_s),
        own_control_(std::move(own_control)),
        peer_control_(std::move(peer_control)) {}

  StatusOr<std::byte*> AllocateArena(int64_t bytes, int64_t workspace_offset) override {
    ZG_RETURN_IF_ERROR(rendezvous_.Enter(
        {"allocate_arena", fmt::format("{} bytes", bytes), bytes, {workspace_offset, 0}, {}}));
    ClearArenas();
    arena_memory_ = OwnedSharedMemory();
    peer_arenas_.clear();
    // Only when all have unmapped the old arenas is their memory free, and only when all have
    // looked at what is free may one allocate.
    ZG_RETURN_IF_ERROR(Barrier("arenas are unmapped"));
    ZG_RETURN_IF_ERROR(ExchangeStatus(*this, "check memory", CheckMemory(bytes)));

    StatusOr<OwnedSharedMemory> arena =
        OwnedSharedMemory::Create(fmt::format("arena of rank {}", rank()), bytes);
    ZG_RETURN_IF_ERROR(ExchangeStatus(*this, "allocate arena", arena.status()));
    ZG_ASSIGN_OR_RETURN(const std::vector<std::string> addresses,
                        Exchange("arena addresses", ToBytes(arena->address())));
    StatusOr<std::vector<MappedMemory>> peer_arenas = MapPeers(addresses);
    ZG_RETURN_IF_ERROR(ExchangeStatus(*this, "map peers' arenas", peer_arenas.status()));

    arena->CloseToNewPeers();
    arena_memory_ = std::move(*arena);
    peer_arenas_ = std::move(*peer_arenas);
    std::vector<const std::byte*> arenas;
    for (const MappedMemory& peer_arena : peer_arenas_) arenas.push_back(peer_arena.data());
    arenas.insert(arenas.begin() + rank(), arena_memory_.data());
    SetArenas(arena_memory_.data(), std::move(arenas), bytes);
    return arena_memory_.data();
  }

  StatusOr<std::vector<std::string>> Exchange(std::string_view name,
                                              const std::string& mine) override {
    ZG_RETURN_IF_ERROR(rendezvous_.Enter({"exchange", name, 0, {}, {}}));
    return GatherStrings(comm_.get(), mine, name, timeout_s_);
  }

  void Abort(const Status& status) override {
    const int failed_rank = rendezvous_.failed_rank();
    if (failed_rank >= 0 && failed_rank != rank()) {
      // This rank has only heard of it: the one that failed says so first, and ends this one too.
      const timespec time{2, 0};
      nanosleep(&time, nullptr);
    }
    PrintAndAbort(status, rank());
  }

  int64_t peer_resident_bytes() const override { return ResidentBytes(peer_arenas_); }

 private:
  Status CheckMemory(int64_t bytes) const {
    ZG_ASSIGN_OR_RETURN(const AvailableMemory available, ReadAvailableMemory());
    return CheckMemoryFor(bytes, size(), available);
  }

  // The arenas of all ranks but this one, by rank.
  StatusOr<std::vector<MappedMemory>> MapPeers(const std::vector<std::string>& addresses) const {
    std::vector<MappedMemory> peers;
    for (int peer = 0; peer < size(); ++peer) {
      if (peer == rank()) continue;
      StatusOr<MappedMemory> memory = MapPeer(FromBytes(addresses[peer]), /*writable=*/false);
      if (!memory.ok()) {
        return memory.status().WithContext(fmt::format("rank {}, arena of rank {}", rank(), peer));
      }
      peers.push_back(std::move(*memory));
    }
    return peers;
  }

  MpiComm comm_;
  const double timeout_s_;
  OwnedSharedMemory own_control_;
  MappedMemory peer_control_;
  OwnedSharedMemory arena_memory_;
  std::vector<MappedMemory> peer_arenas_;  // read-only views
};

}  // namespace

StatusOr<std::unique_ptr<Communicator>> MakeMpiSharedCommunicator(MpiComm comm, double timeout_s) {
  const auto gather_status = [&](const Status& mine, std::string_view what) {
    return GatherStatus(comm.get(), mine, what, timeout_s);
  };
  // Rank 0 makes the control block, the others map it.
  OwnedSharedMemory own_control;
  Status made;
  if (comm.rank() == 0) {
    auto memory = OwnedSharedMemory::Create("control block", ControlBlock::BytesFor(comm.size()));
    made = memory.status();
    if (made.ok()) own_control = std::move(*memory);
  }
  ZG_RETURN_IF_ERROR(gather_status(made, "allocate control block"));
  ControlBlock* control_block = nullptr;
  if (comm.rank() == 0) control_block = ControlBlock::Create(own_control.data());
  ZG_ASSIGN_OR_RETURN(const std::vector<std::string> addresses,
                      GatherStrings(comm.get(), ToBytes(own_control.address()),
                                    "control block address", timeout_s));

  MappedMemory peer_control;
  Status mapped;
  if (comm.rank() != 0) {
    auto memory = MapPeer(FromBytes(addresses[0]), /*writable=*/true);
    mapped =
        memory.status().WithContext(fmt::format("rank {}, control block of rank 0", comm.rank()));
    if (mapped.ok()) {
      peer_control = std::move(*memory);
      control_block = reinterpret_cast<ControlBlock*>(peer_control.data());
    }
  }
  ZG_RETURN_IF_ERROR(gather_status(mapped, "map control block"));
  own_control.CloseToNewPeers();
  return std::unique_ptr<Communicator>(new MpiSharedCommunicator(
      std::move(comm), timeout_s, control_block, std::move(own_control), std::move(peer_control)));
}

}  // namespace zg
