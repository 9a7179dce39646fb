#include "framework/comm/mpi_shared.h"

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "framework/comm/available_memory.h"
#include "framework/comm/mapped_memory.h"
#include "framework/comm/peer_memory_communicator.h"
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

class MpiSharedArena : public PeerArena {
 public:
  MpiSharedArena(ControlPlane* control, Rendezvous* rendezvous)
      : control_(*control), rendezvous_(*rendezvous) {}

  StatusOr<std::byte*> Allocate(int64_t bytes, int64_t workspace_offset) override {
    ZG_RETURN_IF_ERROR(rendezvous_.Enter(
        {"allocate_arena", fmt::format("{} bytes", bytes), bytes, {workspace_offset, 0}, {}}));
    ClearBlocks();
    memory_ = OwnedSharedMemory();
    peers_.clear();
    // The old arenas' memory is free only when all ranks have unmapped them, and a rank may
    // allocate only when all have checked the free memory.
    ZG_RETURN_IF_ERROR(control_.Barrier("arenas are unmapped"));
    ZG_RETURN_IF_ERROR(ExchangeStatus(control_, "check memory", CheckMemory(bytes)));

    StatusOr<OwnedSharedMemory> memory =
        OwnedSharedMemory::Create(fmt::format("arena of rank {}", control_.rank()), bytes);
    ZG_RETURN_IF_ERROR(ExchangeStatus(control_, "allocate arena", memory.status()));
    ZG_ASSIGN_OR_RETURN(const std::vector<std::string> addresses,
                        control_.Exchange("arena addresses", ToBytes(memory->address())));
    StatusOr<std::vector<MappedMemory>> peers = MapPeers(addresses);
    ZG_RETURN_IF_ERROR(ExchangeStatus(control_, "map peers' arenas", peers.status()));

    memory->CloseToNewPeers();
    memory_ = std::move(*memory);
    peers_ = std::move(*peers);
    std::vector<const std::byte*> blocks;
    for (const MappedMemory& peer : peers_) blocks.push_back(peer.data());
    blocks.insert(blocks.begin() + control_.rank(), memory_.data());
    SetBlocks(memory_.data(), std::move(blocks), bytes);
    return memory_.data();
  }

  int64_t peer_resident_bytes() const override { return ResidentBytes(peers_); }

 private:
  Status CheckMemory(int64_t bytes) const {
    ZG_ASSIGN_OR_RETURN(const AvailableMemory available, ReadAvailableMemory());
    return CheckMemoryFor(bytes, control_.size(), available);
  }

  // The arenas of all ranks but this one, by rank.
  StatusOr<std::vector<MappedMemory>> MapPeers(const std::vector<std::string>& addresses) const {
    std::vector<MappedMemory> peers;
    for (int peer = 0; peer < control_.size(); ++peer) {
      if (peer == control_.rank()) continue;
      StatusOr<MappedMemory> memory = MapPeer(FromBytes(addresses[peer]), /*writable=*/false);
      if (!memory.ok()) {
        return memory.status().WithContext(
            fmt::format("rank {}, arena of rank {}", control_.rank(), peer));
      }
      peers.push_back(std::move(*memory));
    }
    return peers;
  }

  ControlPlane& control_;
  Rendezvous& rendezvous_;
  OwnedSharedMemory memory_;
  std::vector<MappedMemory> peers_;  // read-only views
};

// A control block that one rank owns and the others map; one of the two is empty.
struct SharedControlBlock {
  OwnedSharedMemory owned;
  MappedMemory mapped;
  ControlBlock* block = nullptr;
};

StatusOr<SharedControlBlock> OwnControlBlock(int num_ranks) {
  SharedControlBlock control;
  ZG_ASSIGN_OR_RETURN(
      control.owned, OwnedSharedMemory::Create("control block", ControlBlock::BytesFor(num_ranks)));
  control.block = ControlBlock::Create(control.owned.data());
  return control;
}

StatusOr<SharedControlBlock> MapControlBlock(const std::string& address, int rank, int owner) {
  SharedControlBlock control;
  StatusOr<MappedMemory> memory = MapPeer(FromBytes(address), /*writable=*/true);
  if (!memory.ok()) {
    return memory.status().WithContext(
        fmt::format("rank {}, control block of rank {}", rank, owner));
  }
  control.mapped = std::move(*memory);
  control.block = reinterpret_cast<ControlBlock*>(control.mapped.data());
  return control;
}

class MpiSharedCommunicator : public PeerMemoryCommunicator {
 public:
  // Null: `job_block` is its own control block. Collective over `comm`.
  static StatusOr<std::unique_ptr<Communicator>> Connect(MpiComm comm, double timeout_s,
                                                         ControlBlock* job_block);

  MpiSharedCommunicator(MpiComm comm, double timeout_s, SharedControlBlock control,
                        ControlBlock* job_block)
      : PeerMemoryCommunicator(control.block, job_block == nullptr ? control.block : job_block,
                               comm.rank(), comm.size(), timeout_s, &arena_),
        comm_(std::move(comm)),
        timeout_s_(timeout_s),
        arena_(this, &rendezvous()) {
    controls_.push_back(std::move(control));
  }
  ~MpiSharedCommunicator() override { ReleaseGroups(); }

  Arena& arena() override { return arena_; }

  StatusOr<std::unique_ptr<Communicator>> Duplicate() override {
    ZG_RETURN_IF_ERROR(Barrier("duplicate the communicator"));
    ZG_ASSIGN_OR_RETURN(MpiComm comm, MpiComm::Duplicate(comm_.get()));
    return Connect(std::move(comm), timeout_s_, rendezvous().job_block());
  }

  StatusOr<std::vector<std::string>> Exchange(std::string_view name,
                                              const std::string& mine) override {
    ZG_RETURN_IF_ERROR(rendezvous().Enter({"exchange", name, 0, {}, {}}));
    return GatherStrings(comm_.get(), mine, name, timeout_s_);
  }

  void Abort(const Status& status) override {
    const int failed_rank = rendezvous().failed_rank();
    PrintAndAbort(status, rank(), /*was_first=*/failed_rank == rank() || failed_rank < 0);
  }

 protected:
  StatusOr<ControlBlock*> MakeControlBlock(const std::vector<int>& ranks) override {
    const bool is_owner = rank() == ranks[0];
    StatusOr<SharedControlBlock> control = SharedControlBlock();
    if (is_owner) control = OwnControlBlock(static_cast<int>(ranks.size()));
    ZG_RETURN_IF_ERROR(ExchangeStatus(*this, "allocate control block", control.status()));
    ZG_ASSIGN_OR_RETURN(
        const std::vector<std::string> addresses,
        Exchange("control blocks of groups", is_owner ? ToBytes(control->owned.address()) : ""));
    if (!is_owner) {
      control = addresses[ranks[0]].empty()
                    ? StatusOr<SharedControlBlock>(NoLeader(ranks))
                    : MapControlBlock(addresses[ranks[0]], rank(), ranks[0]);
    }
    ZG_RETURN_IF_ERROR(ExchangeStatus(*this, "map control block", control.status()));
    control->owned.CloseToNewPeers();
    controls_.push_back(std::move(*control));
    return controls_.back().block;
  }

 private:
  MpiComm comm_;
  const double timeout_s_;
  std::vector<SharedControlBlock> controls_;  // the job's first, then those of groups
  MpiSharedArena arena_;
};

StatusOr<std::unique_ptr<Communicator>> MpiSharedCommunicator::Connect(MpiComm comm,
                                                                       double timeout_s,
                                                                       ControlBlock* job_block) {
  // Rank 0 makes the control block, the others map it.
  StatusOr<SharedControlBlock> control = SharedControlBlock();
  if (comm.rank() == 0) control = OwnControlBlock(comm.size());
  ZG_RETURN_IF_ERROR(
      GatherStatus(comm.get(), control.status(), "allocate control block", timeout_s));
  ZG_ASSIGN_OR_RETURN(const std::vector<std::string> addresses,
                      GatherStrings(comm.get(), ToBytes(control->owned.address()),
                                    "control block address", timeout_s));
  if (comm.rank() != 0) control = MapControlBlock(addresses[0], comm.rank(), 0);
  ZG_RETURN_IF_ERROR(GatherStatus(comm.get(), control.status(), "map control block", timeout_s));
  control->owned.CloseToNewPeers();
  return std::unique_ptr<Communicator>(
      new MpiSharedCommunicator(std::move(comm), timeout_s, std::move(*control), job_block));
}

}  // namespace

StatusOr<std::unique_ptr<Communicator>> MakeMpiSharedCommunicator(MpiComm comm, double timeout_s) {
  return MpiSharedCommunicator::Connect(std::move(comm), timeout_s, /*job_block=*/nullptr);
}

}  // namespace zg
