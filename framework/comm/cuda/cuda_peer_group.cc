#include "framework/comm/cuda/cuda_peer_group.h"

#include "framework/comm/cuda/fold_peers.h"

namespace zg {

Status CudaPeerGroup::Start(CollectiveKind kind, const CollectiveCall& call) {
  ZG_RETURN_IF_ERROR(CheckIsLeftFold(call));
  ZG_RETURN_IF_ERROR(CheckOperands(kind, call, *this, arena_));
  traffic().BeginCall(kind);
  return rendezvous_.Enter(number_, call);
}

Status CudaPeerGroup::Fold(const CollectiveCall& call, int64_t begin, int64_t count,
                           std::byte* output) {
  const int64_t term_bytes = SizeOf(call.types.terms);
  PeerTerms inputs;
  if (call.accumulate) inputs.start = output;
  for (const int rank : fold_order()) {
    inputs.terms[inputs.num_ranks++] = Peer(call.input, rank) + begin * term_bytes;
  }
  traffic().AddReceived((size() - 1) * count * term_bytes);
  return FoldPeersOnCuda(call.types, inputs, count, output, arena_.device().stream());
}

Status CudaPeerGroup::CopyFrom(const std::byte* peer, int64_t bytes, std::byte* to) {
  traffic().AddReceived(bytes);
  return arena_.device().Copy(to, peer, bytes);
}

Status CudaPeerGroup::ReduceScatter(std::string_view name, ArenaOperand input, ArenaOperand output,
                                    int64_t elements, ReductionTypes types, bool accumulate) {
  const CollectiveCall call = {"reduce_scatter", name, elements, input, output, types, accumulate};
  ZG_RETURN_IF_ERROR(Start(CollectiveKind::kReduceScatter, call));
  const int64_t part = elements / size();
  ZG_RETURN_IF_ERROR(Fold(call, rank() * part, part, Own(output)));
  return rendezvous_.Leave();
}

Status CudaPeerGroup::AllGather(std::string_view name, ArenaOperand input, ArenaOperand output,
                                int64_t part_bytes) {
  ZG_RETURN_IF_ERROR(
      Start(CollectiveKind::kAllGather, {"all_gather", name, part_bytes, input, output}));
  const std::byte* const own = Own(input);
  std::byte* const own_place = Own(output) + rank() * part_bytes;
  if (own != own_place) ZG_RETURN_IF_ERROR(arena_.device().Copy(own_place, own, part_bytes));
  for (int i = 1; i < size(); ++i) {
    const int peer = (rank() + i) % size();  // each rank starts at another peer
    ZG_RETURN_IF_ERROR(CopyFrom(Peer(input, peer), part_bytes, Own(output) + peer * part_bytes));
  }
  return rendezvous_.Leave();
}

Status CudaPeerGroup::AllReduce(std::string_view name, ArenaOperand input, ArenaOperand output,
                                int64_t elements, ReductionTypes types, bool accumulate) {
  const CollectiveCall call = {"all_reduce", name, elements, input, output, types, accumulate};
  ZG_RETURN_IF_ERROR(Start(CollectiveKind::kAllReduce, call));
  const Parts parts = {elements, (elements + size() - 1) / size()};
  const int64_t sum_bytes = SizeOf(types.sum);
  std::byte* const sums = Own(output);
  const int64_t own_begin = parts.begin(rank());
  ZG_RETURN_IF_ERROR(Fold(call, own_begin, parts.count(rank()), sums + own_begin * sum_bytes));
  ZG_RETURN_IF_ERROR(rendezvous_.MeetAgain());
  for (int i = 1; i < size(); ++i) {
    const int peer = (rank() + i) % size();
    const int64_t begin_bytes = parts.begin(peer) * sum_bytes;
    ZG_RETURN_IF_ERROR(CopyFrom(Peer(output, peer) + begin_bytes, parts.count(peer) * sum_bytes,
                                sums + begin_bytes));
  }
  return rendezvous_.Leave();
}

Status CudaPeerGroup::AllToAll(std::string_view name, ArenaOperand input, ArenaOperand output,
                               int64_t part_bytes) {
  ZG_RETURN_IF_ERROR(
      Start(CollectiveKind::kAllToAll, {"all_to_all", name, part_bytes, input, output}));
  ZG_RETURN_IF_ERROR(arena_.device().Copy(Own(output) + rank() * part_bytes,
                                          Own(input) + rank() * part_bytes, part_bytes));
  for (int i = 1; i < size(); ++i) {
    const int peer = (rank() + i) % size();
    ZG_RETURN_IF_ERROR(CopyFrom(Peer(input, peer) + rank() * part_bytes, part_bytes,
                                Own(output) + peer * part_bytes));
  }
  return rendezvous_.Leave();
}

}  // namespace zg
