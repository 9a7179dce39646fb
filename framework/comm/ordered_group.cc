#include "framework/comm/ordered_group.h"

#include <algorithm>
#include <utility>

#include "framework/base/check.h"

namespace zg {
namespace {

// For the chunks of all peers together.
constexpr int64_t kMaxWorkspaceBytes = int64_t{32} << 20;
constexpr int64_t kAlignmentBytes = 256;

int64_t ChunkBytes(int num_ranks, int64_t max_chunk_bytes) {
  const int64_t share = kMaxWorkspaceBytes / std::max(1, num_ranks - 1);
  return std::max(kAlignmentBytes,
                  std::min(share, max_chunk_bytes) / kAlignmentBytes * kAlignmentBytes);
}

}  // namespace

OrderedArena::OrderedArena(Device* device, ControlPlane* control, int64_t max_chunk_bytes)
    : device_(*device),
      control_(*control),
      chunk_bytes_(ChunkBytes(control->size(), max_chunk_bytes)) {}

StatusOr<std::byte*> OrderedArena::Allocate(int64_t bytes, int64_t workspace_offset) {
  ZG_RETURN_IF_ERROR(
      control_.Barrier(fmt::format("allocate_arena of {} bytes, {}", bytes, workspace_offset)));
  ZG_CHECK(workspace_offset >= 0 && workspace_offset + workspace_bytes() <= bytes,
           "the workspace at {} is not in the arena of {} bytes", workspace_offset, bytes);
  ClearBlock();
  memory_ = nullptr;
  StatusOr<DeviceBytes> memory = device_.Allocate(bytes);
  ZG_RETURN_IF_ERROR(ExchangeStatus(control_, "allocate arena", memory.status()));
  memory_ = std::move(*memory);
  SetBlock(memory_.get(), bytes, workspace_offset);
  return memory_.get();
}

Status OrderedGroup::Start(CollectiveKind kind, const CollectiveCall& call) {
  ZG_RETURN_IF_ERROR(CheckIsLeftFold(call));
  ZG_RETURN_IF_ERROR(CheckOperands(kind, call, *this, arena_));
  traffic().BeginCall(kind);
  return Status::Ok();
}

Status OrderedGroup::Exchange() {
  for (const Message& message : received_) traffic().AddReceived(message.bytes);
  return SendAndReceive(sent_, received_);
}

Status OrderedGroup::Gather(const std::byte* own, int64_t part_bytes, std::byte* output) {
  traffic().AddReceived((size() - 1) * part_bytes);
  return GatherEqualParts(own, part_bytes, output);
}

Status OrderedGroup::ReduceScatter(std::string_view name, ArenaOperand input, ArenaOperand output,
                                   int64_t elements, ReductionTypes types, bool accumulate) {
  ZG_RETURN_IF_ERROR(Start(CollectiveKind::kReduceScatter,
                           {"reduce_scatter", name, elements, input, output, types, accumulate}));
  if (HasOwnSums(types, accumulate)) {
    // As much as NCCL's rings move.
    traffic().AddReceived(elements / size() * (size() - 1) * SizeOf(types.terms));
    ZG_RETURN_IF_ERROR(OwnReduceScatter(At(input), At(output), elements, types.terms));
  } else {
    const int64_t bytes = elements * SizeOf(types.terms);
    ZG_RETURN_IF_ERROR(
        FoldParts(At(input), {bytes, bytes / size()}, types, accumulate, At(output)));
  }
  return Queued("reduce_scatter", name);
}

Status OrderedGroup::AllGather(std::string_view name, ArenaOperand input, ArenaOperand output,
                               int64_t part_bytes) {
  ZG_RETURN_IF_ERROR(
      Start(CollectiveKind::kAllGather, {"all_gather", name, part_bytes, input, output}));
  ZG_RETURN_IF_ERROR(Gather(At(input), part_bytes, At(output)));
  return Queued("all_gather", name);
}

Status OrderedGroup::AllReduce(std::string_view name, ArenaOperand input, ArenaOperand output,
                               int64_t elements, ReductionTypes types, bool accumulate) {
  ZG_RETURN_IF_ERROR(Start(CollectiveKind::kAllReduce,
                           {"all_reduce", name, elements, input, output, types, accumulate}));
  if (HasOwnSums(types, accumulate)) {
    traffic().AddReceived(2 * elements * SizeOf(types.terms) * (size() - 1) / size());
    ZG_RETURN_IF_ERROR(OwnAllReduce(At(input), At(output), elements, types.terms));
  } else {
    const int64_t part = (elements + size() - 1) / size();
    const Parts terms{elements * SizeOf(types.terms), part * SizeOf(types.terms)};
    const Parts sums{elements * SizeOf(types.sum), part * SizeOf(types.sum)};
    std::byte* const own_part = At(output) + sums.begin(rank());
    ZG_RETURN_IF_ERROR(FoldParts(At(input), terms, types, accumulate, own_part));
    ZG_RETURN_IF_ERROR(GatherParts(own_part, sums, At(output)));
  }
  return Queued("all_reduce", name);
}

Status OrderedGroup::AllToAll(std::string_view name, ArenaOperand input, ArenaOperand output,
                              int64_t part_bytes) {
  ZG_RETURN_IF_ERROR(
      Start(CollectiveKind::kAllToAll, {"all_to_all", name, part_bytes, input, output}));
  sent_.clear();
  received_.clear();
  for (int peer = 0; peer < size(); ++peer) {
    if (peer == rank() || part_bytes == 0) continue;
    sent_.push_back({At(input) + peer * part_bytes, part_bytes, peer});
    received_.push_back({At(output) + peer * part_bytes, part_bytes, peer});
  }
  ZG_RETURN_IF_ERROR(Exchange());
  ZG_RETURN_IF_ERROR(
      device().Copy(At(output) + rank() * part_bytes, At(input) + rank() * part_bytes, part_bytes));
  return Queued("all_to_all", name);
}

// Part p of `input` goes to rank p; this rank's parts from all ranks are folded into `output`.
// `parts` are those of the terms.
Status OrderedGroup::FoldParts(std::byte* input, const Parts& parts, ReductionTypes types,
                               bool accumulate, std::byte* output) {
  std::byte* const workspace = arena_.data() + arena_.workspace_offset();
  const int64_t chunk_bytes = arena_.chunk_bytes();
  const int own_place = FoldPosition(rank());
  const int64_t term_bytes = SizeOf(types.terms);
  for (int64_t begin = 0; begin < parts.part; begin += chunk_bytes) {
    const auto count = [&](int of_rank) {
      return std::clamp<int64_t>(parts.count(of_rank) - begin, 0, chunk_bytes);
    };
    sent_.clear();
    received_.clear();
    for (int peer = 0; peer < size(); ++peer) {
      if (peer == rank()) continue;
      // Received in the order in which the terms are added.
      const int position = FoldPosition(peer);
      const int place = position < own_place ? position : position - 1;
      if (count(peer) > 0) {
        sent_.push_back({input + parts.begin(peer) + begin, count(peer), peer});
      }
      if (count(rank()) > 0) {
        received_.push_back({workspace + place * chunk_bytes, count(rank()), peer});
      }
    }
    ZG_RETURN_IF_ERROR(Exchange());
    if (count(rank()) == 0) continue;
    std::byte* const sums = output + begin / term_bytes * SizeOf(types.sum);
    FoldInputs inputs;
    inputs.start = accumulate ? sums : nullptr;
    inputs.own = input + parts.begin(rank()) + begin;
    inputs.received = workspace;
    inputs.received_stride_bytes = chunk_bytes;
    inputs.rank = own_place;
    inputs.num_ranks = size();
    ZG_RETURN_IF_ERROR(Fold(types, inputs, count(rank()) / term_bytes, sums));
  }
  return Status::Ok();
}

// `own`, in its place in `output`, goes to every rank.
Status OrderedGroup::GatherParts(std::byte* own, const Parts& parts, std::byte* output) {
  if (parts.total == parts.part * size()) return Gather(own, parts.part, output);
  sent_.clear();
  received_.clear();
  for (int peer = 0; peer < size(); ++peer) {
    if (peer == rank()) continue;
    if (parts.count(rank()) > 0) sent_.push_back({own, parts.count(rank()), peer});
    if (parts.count(peer) > 0) {
      received_.push_back({output + parts.begin(peer), parts.count(peer), peer});
    }
  }
  return Exchange();
}

Status OrderedGroup::OwnReduceScatter(const std::byte*, std::byte*, int64_t, DType) {
  ZG_CHECK(false, "this transport has no sums of its own");
}

Status OrderedGroup::OwnAllReduce(const std::byte*, std::byte*, int64_t, DType) {
  ZG_CHECK(false, "this transport has no sums of its own");
}

}  // namespace zg
