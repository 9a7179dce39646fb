#include "framework/comm/peer_memory_group.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "framework/comm/fold.h"
#include "framework/comm/peer_copy.h"

namespace zg {
namespace {

// Below this size every rank may fold the whole of an all-reduce, which saves a wait...
constexpr int64_t kSmallAllReduceBytes = (64 << 10) - 1;

constexpr int64_t kMaxElementBytes = 8;

// ... if no rank then reads more than the busiest rank would if each folded a part.
bool IsFoldedWhole(const CollectiveCall& call, int num_ranks) {
  return call.count * SizeOf(call.types.sum) <= kSmallAllReduceBytes &&
         call.types.terms == call.types.sum && (num_ranks <= 2 || call.count == 1);
}

}  // namespace

PeerMemoryGroup::PeerMemoryGroup(std::vector<int> ranks, int job_rank, ControlBlock* block,
                                 ControlBlock* job_block, double timeout_s, const PeerArena* arena,
                                 TrafficMeter* traffic)
    : Group(std::move(ranks), job_rank, traffic),
      rendezvous_(block, job_block, this->ranks(), rank(), timeout_s),
      arena_(*arena),
      small_sum_(new std::byte[size() <= 2 ? kSmallAllReduceBytes : kMaxElementBytes]) {
  fold_inputs_.reserve(size() + 1);
}

const std::byte* PeerMemoryGroup::Peer(ArenaOperand operand, int rank) const {
  return arena_.of(ranks()[rank]) + operand.OffsetOn(rank);
}

std::byte* PeerMemoryGroup::Own(ArenaOperand operand) const {
  return arena_.data() + operand.OffsetOn(rank());
}

Status PeerMemoryGroup::Start(CollectiveKind kind, const CollectiveCall& call) {
  ZG_RETURN_IF_ERROR(CheckOperands(kind, call, *this, arena_));
  traffic().BeginCall(kind);
  return rendezvous_.Enter(call);
}

void PeerMemoryGroup::Fold(const CollectiveCall& call, int64_t begin, int64_t count,
                           std::byte* output) {
  const int64_t term_bytes = SizeOf(call.types.terms);
  fold_inputs_.clear();
  if (call.accumulate) fold_inputs_.push_back(output);
  for (const int rank : fold_order()) {
    fold_inputs_.push_back(Peer(call.input, rank) + begin * term_bytes);
  }
  zg::Fold(call.types, call.accumulate, fold_inputs_.data(), static_cast<int>(fold_inputs_.size()),
           count, output);
  traffic().AddReceived((size() - 1) * count * term_bytes);
}

void PeerMemoryGroup::CopyFrom(const std::byte* peer, int64_t bytes, std::byte* to) {
  CopyFromPeer(peer, bytes, to);
  traffic().AddReceived(bytes);
}

Status PeerMemoryGroup::ReduceScatter(std::string_view name, ArenaOperand input,
                                      ArenaOperand output, int64_t elements, ReductionTypes types,
                                      bool accumulate) {
  const CollectiveCall call = {"reduce_scatter", name, elements, input, output, types, accumulate};
  ZG_RETURN_IF_ERROR(Start(CollectiveKind::kReduceScatter, call));
  const int64_t part = elements / size();
  Fold(call, rank() * part, part, Own(output));
  return rendezvous_.MeetAgain();
}

Status PeerMemoryGroup::AllGather(std::string_view name, ArenaOperand input, ArenaOperand output,
                                  int64_t part_bytes) {
  ZG_RETURN_IF_ERROR(
      Start(CollectiveKind::kAllGather, {"all_gather", name, part_bytes, input, output}));
  const std::byte* const own = Own(input);
  std::byte* const own_place = Own(output) + rank() * part_bytes;
  if (own != own_place) CopyFromPeer(own, part_bytes, own_place);
  for (int i = 1; i < size(); ++i) {
    const int peer = (rank() + i) % size();  // each rank starts at another peer
    CopyFrom(Peer(input, peer), part_bytes, Own(output) + peer * part_bytes);
  }
  return rendezvous_.MeetAgain();
}

Status PeerMemoryGroup::AllReduce(std::string_view name, ArenaOperand input, ArenaOperand output,
                                  int64_t elements, ReductionTypes types, bool accumulate) {
  const CollectiveCall call = {"all_reduce", name, elements, input, output, types, accumulate};
  ZG_RETURN_IF_ERROR(Start(CollectiveKind::kAllReduce, call));
  return IsFoldedWhole(call, size()) ? WholeAllReduce(call) : PartwiseAllReduce(call);
}

Status PeerMemoryGroup::WholeAllReduce(const CollectiveCall& call) {
  std::byte* const output = Own(call.output);
  const bool in_place = Own(call.input) == output;
  Fold(call, 0, call.count, in_place ? small_sum_.get() : output);
  ZG_RETURN_IF_ERROR(rendezvous_.MeetAgain());
  if (in_place) std::memcpy(output, small_sum_.get(), call.count * SizeOf(call.types.sum));
  return Status::Ok();
}

Status PeerMemoryGroup::PartwiseAllReduce(const CollectiveCall& call) {
  const Parts parts = {call.count, (call.count + size() - 1) / size()};  // in elements
  const int64_t sum_bytes = SizeOf(call.types.sum);
  std::byte* const output = Own(call.output);
  const int64_t own_begin = parts.begin(rank());
  Fold(call, own_begin, parts.count(rank()), output + own_begin * sum_bytes);
  ZG_RETURN_IF_ERROR(rendezvous_.MeetAgain());
  for (int i = 1; i < size(); ++i) {
    const int peer = (rank() + i) % size();
    const int64_t begin_bytes = parts.begin(peer) * sum_bytes;
    CopyFrom(Peer(call.output, peer) + begin_bytes, parts.count(peer) * sum_bytes,
             output + begin_bytes);
  }
  return rendezvous_.MeetAgain();
}

Status PeerMemoryGroup::AllToAll(std::string_view name, ArenaOperand input, ArenaOperand output,
                                 int64_t part_bytes) {
  ZG_RETURN_IF_ERROR(
      Start(CollectiveKind::kAllToAll, {"all_to_all", name, part_bytes, input, output}));
  CopyFromPeer(Own(input) + rank() * part_bytes, part_bytes, Own(output) + rank() * part_bytes);
  for (int i = 1; i < size(); ++i) {
    const int peer = (rank() + i) % size();
    CopyFrom(Peer(input, peer) + rank() * part_bytes, part_bytes, Own(output) + peer * part_bytes);
  }
  return rendezvous_.MeetAgain();
}

}  // namespace zg
