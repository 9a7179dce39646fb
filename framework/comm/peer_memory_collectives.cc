#include "framework/comm/peer_memory_collectives.h"

#include <algorithm>
#include <cstring>

#include "framework/comm/left_fold.h"
#include "framework/comm/peer_copy.h"

namespace zg {
namespace {

// Below this every rank folds the whole of an all-reduce: it reads more, but waits once less.
constexpr int64_t kSmallAllReduceBytes = 64 << 10;
// ... as long as that is not too much to read, from many ranks.
constexpr int64_t kSmallAllReduceReadBytes = 512 << 10;

int64_t MaxSmallBytes(int num_ranks) {
  return std::min(kSmallAllReduceBytes, kSmallAllReduceReadBytes / num_ranks) - 1;
}

}  // namespace

PeerMemoryCollectives::PeerMemoryCollectives(ControlBlock* control_block, int rank, int num_ranks,
                                             double timeout_s)
    : rendezvous_(control_block, rank, num_ranks, timeout_s),
      rank_(rank),
      num_ranks_(num_ranks),
      small_sum_(new std::byte[MaxSmallBytes(num_ranks)]) {
  fold_inputs_.reserve(num_ranks + 1);
}

void PeerMemoryCollectives::SetArenas(std::byte* own_arena, std::vector<const std::byte*> arenas,
                                      int64_t arena_bytes) {
  own_arena_ = own_arena;
  arenas_ = std::move(arenas);
  arena_bytes_ = arena_bytes;
}

const std::byte* PeerMemoryCollectives::Peer(ArenaOperand operand, int rank) const {
  return arenas_[rank] + operand.OffsetOn(rank);
}

std::byte* PeerMemoryCollectives::Own(ArenaOperand operand) const {
  return own_arena_ + operand.OffsetOn(rank_);
}

Status PeerMemoryCollectives::Start(CollectiveKind kind, const CollectiveCall& call) {
  ZG_RETURN_IF_ERROR(CheckOperands(kind, call, rank_, num_ranks_, own_arena_, arena_bytes_));
  CountTraffic(kind, BytesSent(kind, call, num_ranks_));
  return rendezvous_.Enter(call);
}

void PeerMemoryCollectives::Fold(const CollectiveCall& call, int64_t begin, int64_t count,
                                 std::byte* output) {
  fold_inputs_.clear();
  if (call.accumulate) fold_inputs_.push_back(output);
  for (int rank = 0; rank < num_ranks_; ++rank) {
    fold_inputs_.push_back(Peer(call.input, rank) + begin * SizeOf(call.types.terms));
  }
  LeftFold(call.types, call.accumulate, fold_inputs_.data(), static_cast<int>(fold_inputs_.size()),
           count, output);
}

Status PeerMemoryCollectives::ReduceScatter(std::string_view name, ArenaOperand input,
                                            ArenaOperand output, int64_t elements,
                                            ReductionTypes types, bool accumulate) {
  const CollectiveCall call = {"reduce_scatter", name, elements, input, output, types, accumulate};
  ZG_RETURN_IF_ERROR(Start(CollectiveKind::kReduceScatter, call));
  const int64_t part = elements / num_ranks_;
  Fold(call, rank_ * part, part, Own(output));
  return rendezvous_.MeetAgain();
}

Status PeerMemoryCollectives::AllGather(std::string_view name, ArenaOperand input,
                                        ArenaOperand output, int64_t part_bytes) {
  ZG_RETURN_IF_ERROR(
      Start(CollectiveKind::kAllGather, {"all_gather", name, part_bytes, input, output}));
  for (int i = 0; i < num_ranks_; ++i) {
    const int peer = (rank_ + i) % num_ranks_;  // each starts elsewhere
    std::byte* const part = Own(output) + peer * part_bytes;
    if (part != Peer(input, peer)) CopyFromPeer(Peer(input, peer), part_bytes, part);
  }
  return rendezvous_.MeetAgain();
}

Status PeerMemoryCollectives::AllReduce(std::string_view name, ArenaOperand input,
                                        ArenaOperand output, int64_t elements, ReductionTypes types,
                                        bool accumulate) {
  const CollectiveCall call = {"all_reduce", name, elements, input, output, types, accumulate};
  ZG_RETURN_IF_ERROR(Start(CollectiveKind::kAllReduce, call));
  if (elements * SizeOf(types.sum) <= MaxSmallBytes(num_ranks_)) return SmallAllReduce(call);
  return LargeAllReduce(call);
}

Status PeerMemoryCollectives::SmallAllReduce(const CollectiveCall& call) {
  std::byte* const output = Own(call.output);
  const bool in_place = Own(call.input) == output;
  Fold(call, 0, call.count, in_place ? small_sum_.get() : output);
  ZG_RETURN_IF_ERROR(rendezvous_.MeetAgain());
  if (in_place) std::memcpy(output, small_sum_.get(), call.count * SizeOf(call.types.sum));
  return Status::Ok();
}

Status PeerMemoryCollectives::LargeAllReduce(const CollectiveCall& call) {
  const int64_t chunk = (call.count + num_ranks_ - 1) / num_ranks_;
  const auto begin_of = [&](int rank) { return std::min(rank * chunk, call.count); };
  const auto count_of = [&](int rank) { return begin_of(rank + 1) - begin_of(rank); };

  const int64_t element_bytes = SizeOf(call.types.sum);
  std::byte* const output = Own(call.output);
  Fold(call, begin_of(rank_), count_of(rank_), output + begin_of(rank_) * element_bytes);
  ZG_RETURN_IF_ERROR(rendezvous_.MeetAgain());
  for (int i = 1; i < num_ranks_; ++i) {
    const int peer = (rank_ + i) % num_ranks_;
    const int64_t begin_bytes = begin_of(peer) * element_bytes;
    CopyFromPeer(Peer(call.output, peer) + begin_bytes, count_of(peer) * element_bytes,
                 output + begin_bytes);
  }
  return rendezvous_.MeetAgain();
}

Status PeerMemoryCollectives::AllToAll(std::string_view name, ArenaOperand input,
                                       ArenaOperand output, int64_t part_bytes) {
  ZG_RETURN_IF_ERROR(
      Start(CollectiveKind::kAllToAll, {"all_to_all", name, part_bytes, input, output}));
  for (int i = 0; i < num_ranks_; ++i) {
    const int peer = (rank_ + i) % num_ranks_;
    CopyFromPeer(Peer(input, peer) + rank_ * part_bytes, part_bytes,
                 Own(output) + peer * part_bytes);
  }
  return rendezvous_.MeetAgain();
}

Status PeerMemoryCollectives::Barrier(std::string_view name) {
  return rendezvous_.Enter({"barrier", name, 0, {}, {}});
}

}  // namespace zg
