// PeerMemoryGroup: the collectives of ranks that can read each other's arenas directly. The owner
// of a part folds it straight out of its peers' buffers, and a gather copies from them: every byte
// crosses between ranks once, and there are no intermediate buffers.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "framework/comm/collective_call.h"
#include "framework/comm/group.h"
#include "framework/comm/peer_arena.h"
#include "framework/comm/rendezvous.h"

namespace zg {

class PeerMemoryGroup : public Group {
 public:
  // `ranks` synchronise at `block`. The pointers must outlive the group.
  PeerMemoryGroup(std::vector<int> ranks, int job_rank, ControlBlock* block,
                  ControlBlock* job_block, double timeout_s, const PeerArena* arena,
                  TrafficMeter* traffic);

  Rendezvous& rendezvous() { return rendezvous_; }

  Status ReduceScatter(std::string_view name, ArenaOperand input, ArenaOperand output,
                       int64_t elements, ReductionTypes types, bool accumulate) final;
  Status AllGather(std::string_view name, ArenaOperand input, ArenaOperand output,
                   int64_t part_bytes) final;
  Status AllReduce(std::string_view name, ArenaOperand input, ArenaOperand output, int64_t elements,
                   ReductionTypes types, bool accumulate) final;
  Status AllToAll(std::string_view name, ArenaOperand input, ArenaOperand output,
                  int64_t part_bytes) final;

 private:
  Status Start(CollectiveKind kind, const CollectiveCall& call);
  const std::byte* Peer(ArenaOperand operand, int rank) const;
  std::byte* Own(ArenaOperand operand) const;

  // Folds elements [begin, begin + count) of every rank's input into `output`.
  void Fold(const CollectiveCall& call, int64_t begin, int64_t count, std::byte* output);
  void CopyFrom(const std::byte* peer, int64_t bytes, std::byte* to);
  Status WholeAllReduce(const CollectiveCall& call);
  Status PartwiseAllReduce(const CollectiveCall& call);

  Rendezvous rendezvous_;
  const PeerArena& arena_;
  std::vector<const void*> fold_inputs_;
  std::unique_ptr<std::byte[]> small_sum_;  // for a small all-reduce in place
};

}  // namespace zg
