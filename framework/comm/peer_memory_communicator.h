// PeerMemoryCommunicator: the common part of communicators whose ranks read each other's memory.
// Threads of one process (in_process.h) and processes of one host (mpi_shared.h) differ in how they
// share blocks of memory, exchange strings and end the job.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "framework/comm/communicator.h"
#include "framework/comm/peer_memory_group.h"

namespace zg {

class PeerMemoryCommunicator : public Communicator {
 public:
  int rank() const final { return world_.rank(); }
  int size() const final { return world_.size(); }
  std::string_view transport() const final { return "shared memory"; }
  Group& world() final { return world_; }
  bool can_have_threads() const final { return true; }
  Status Barrier(std::string_view name) final {
    return rendezvous().Enter({"barrier", name, 0, {}, {}});
  }
  Status ExchangeWord(std::string_view name, uint64_t mine, uint64_t* all) final {
    CollectiveCall call = {"exchange_word", name, 0, {}, {}};
    call.word = mine;
    ZG_RETURN_IF_ERROR(rendezvous().Enter(call));
    for (int rank = 0; rank < size(); ++rank) all[rank] = rendezvous().WordOf(rank);
    return Status::Ok();
  }

 protected:
  // `job_block` is that of the job's first communicator, which keeps the first failure; it may be the
  // same.
  PeerMemoryCommunicator(ControlBlock* block, ControlBlock* job_block, int rank, int num_ranks,
                         double timeout_s, const PeerArena* arena)
      : arena_(*arena),
        world_(AllRanks(num_ranks), rank, block, job_block, timeout_s, arena, &traffic_meter()) {}

  Rendezvous& rendezvous() { return world_.rendezvous(); }

  // A control block for `ranks`, which the first of them provides. Every rank of the job calls this
  // for its own group.
  virtual StatusOr<ControlBlock*> MakeControlBlock(const std::vector<int>& ranks) = 0;

  StatusOr<std::unique_ptr<Group>> MakeGroup(const std::vector<int>& ranks) final {
    ZG_ASSIGN_OR_RETURN(ControlBlock* const block, MakeControlBlock(ranks));
    return std::unique_ptr<Group>(
        new PeerMemoryGroup(ranks, rank(), block, rendezvous().job_block(),
                            rendezvous().timeout_s(), &arena_, &traffic_meter()));
  }

  // The error if the first rank of a group did not ask for the same group.
  Status NoLeader(const std::vector<int>& ranks) const {
    return InvalidArgument(
        "rank {} asks for a group that rank {} leads, which asks for another; every rank must ask "
        "for the same groups",
        world_.rank(), ranks[0]);
  }

 private:
  const PeerArena& arena_;
  PeerMemoryGroup world_;
};

}  // namespace zg
