// CudaPeerGroup: the collectives of ranks whose GPUs map each other's arenas, all on the device's
// queue. Nothing here waits.
#pragma once

#include <string_view>
#include <vector>

#include "framework/comm/collective_call.h"
#include "framework/comm/cuda/cuda_peer_arena.h"
#include "framework/comm/cuda/stream_rendezvous.h"
#include "framework/comm/group.h"

namespace zg {

class CudaPeerGroup : public Group {
 public:
  // The pointers must outlive the group.
  CudaPeerGroup(std::vector<int> ranks, int job_rank, const CudaPeerArena* arena,
                StreamRendezvous* rendezvous, TrafficMeter* traffic)
      : Group(std::move(ranks), job_rank, traffic),
        arena_(*arena),
        rendezvous_(*rendezvous),
        number_(rendezvous->AddGroup(this->ranks())) {}

  Status ReduceScatter(std::string_view name, ArenaOperand input, ArenaOperand output,
                       int64_t elements, ReductionTypes types, bool accumulate) override;
  Status AllGather(std::string_view name, ArenaOperand input, ArenaOperand output,
                   int64_t part_bytes) override;
  Status AllReduce(std::string_view name, ArenaOperand input, ArenaOperand output, int64_t elements,
                   ReductionTypes types, bool accumulate) override;
  Status AllToAll(std::string_view name, ArenaOperand input, ArenaOperand output,
                  int64_t part_bytes) override;

 private:
  Status Start(CollectiveKind kind, const CollectiveCall& call);
  const std::byte* Peer(ArenaOperand operand, int rank) const {
    return arena_.of(ranks()[rank]) + operand.OffsetOn(rank);
  }
  std::byte* Own(ArenaOperand operand) const { return arena_.data() + operand.OffsetOn(rank()); }

  // Folds elements [begin, begin + count) of every rank's input into `output`.
  Status Fold(const CollectiveCall& call, int64_t begin, int64_t count, std::byte* output);
  Status CopyFrom(const std::byte* peer, int64_t bytes, std::byte* to);

  const CudaPeerArena& arena_;
  StreamRendezvous& rendezvous_;
  const int number_;  // number of the group at the rendezvous
};

}  // namespace zg
