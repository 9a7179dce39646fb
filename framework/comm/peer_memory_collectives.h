// PeerMemoryCollectives: the collectives of ranks that can read each other's arenas directly. The
// owner of a part folds it straight out of its peers' buffers, and a gather copies from them: every
// byte crosses between ranks once and there are no buffers in between.
//
// What differs between threads of one process and processes of one host (how arenas are allocated,
// how strings are exchanged, what ends the job) is left to the derived classes.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "framework/comm/collective_call.h"
#include "framework/comm/communicator.h"
#include "framework/comm/rendezvous.h"

namespace zg {

class PeerMemoryCollectives : public Communicator {
 public:
  int rank() const final { return rank_; }
  int size() const final { return num_ranks_; }
  std::string_view transport() const final { return "shared memory"; }
  int64_t workspace_bytes() const final { return 0; }

  Status ReduceScatter(std::string_view name, ArenaOperand input, ArenaOperand output,
                       int64_t elements, ReductionTypes types, bool accumulate) final;
  Status AllGather(std::string_view name, ArenaOperand input, ArenaOperand output,
                   int64_t part_bytes) final;
  Status AllReduce(std::string_view name, ArenaOperand input, ArenaOperand output, int64_t elements,
                   ReductionTypes types, bool accumulate) final;
  Status AllToAll(std::string_view name, ArenaOperand input, ArenaOperand output,
                  int64_t part_bytes) final;
  Status Barrier(std::string_view name) final;

 protected:
  PeerMemoryCollectives(ControlBlock* control_block, int rank, int num_ranks, double timeout_s);

  // The arenas of all ranks, by rank, from now on; own_arena is the writable view of this rank's.
  void SetArenas(std::byte* own_arena, std::vector<const std::byte*> arenas, int64_t arena_bytes);
  void ClearArenas() { SetArenas(nullptr, {}, 0); }

  Rendezvous rendezvous_;

 private:
  Status Start(CollectiveKind kind, const CollectiveCall& call);
  const std::byte* Peer(ArenaOperand operand, int rank) const;
  std::byte* Own(ArenaOperand operand) const;

  // Folds elements [begin, begin + count) of every rank's input into `output`.
  void Fold(const CollectiveCall& call, int64_t begin, int64_t count, std::byte* output);
  Status SmallAllReduce(const CollectiveCall& call);
  Status LargeAllReduce(const CollectiveCall& call);

  const int rank_;
  const int num_ranks_;
  std::byte* own_arena_ = nullptr;
  std::vector<const std::byte*> arenas_;
  int64_t arena_bytes_ = 0;
  std::vector<const void*> fold_inputs_;
  std::unique_ptr<std::byte[]> small_sum_;  // of a small all-reduce that is in place
};

}  // namespace zg
