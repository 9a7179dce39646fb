#include "framework/comm/ordered_collectives.h"

#include <algorithm>
#include <utility>

#include "framework/base/check.h"

namespace zg {
namespace {

// Of the chunks of all peers together.
constexpr int64_t kMaxWorkspaceBytes = int64_t{32} << 20;
constexpr int64_t kAlignmentBytes = 256;

int64_t ChunkBytes(int num_ranks, int64_t max_chunk_bytes) {
  const int64_t share = kMaxWorkspaceBytes / std::max(1, num_ranks - 1);
  return std::max(kAlignmentBytes,
                  std::min(share, max_chunk_bytes) / kAlignmentBytes * kAlignmentBytes);
}

}  // namespace

struct OrderedCollectives::Parts {
  int64_t total = 0;
  int64_t part = 0;
  int64_t begin(int rank) const { return std::min(rank * part, total); }
  int64_t count(int rank) const { return begin(rank + 1) - begin(rank); }
};

OrderedCollectives::OrderedCollectives(Device* device, Communicator* control,
                                       int64_t max_chunk_bytes)
    : device_(*device),
      control_(*control),
      chunk_bytes_(ChunkBytes(control->size(), max_chunk_bytes)) {}

StatusOr<std::byte*> OrderedCollectives::AllocateArena(int64_t bytes, int64_t workspace_offset) {
  ZG_RETURN_IF_ERROR(
      control_.Barrier(fmt::format("allocate_arena of {} bytes, {}", bytes, workspace_offset)));
  ZG_CHECK(workspace_offset >= 0 && workspace_offset + workspace_bytes() <= bytes,
           "the workspace at {} is not in the arena of {} bytes", workspace_offset, bytes);
  arena_ = nullptr;
  arena_bytes_ = 0;
  StatusOr<DeviceBytes> arena = device_.Allocate(bytes);
  ZG_RETURN_IF_ERROR(ExchangeStatus(control_, "allocate arena", arena.status()));
  arena_ = std::move(*arena);
  arena_bytes_ = bytes;
  workspace_offset_ = workspace_offset;
  return arena_.get();
}

Status OrderedCollectives::Start(CollectiveKind kind, const CollectiveCall& call) {
  ZG_RETURN_IF_ERROR(CheckOperands(kind, call, rank(), size(), arena_.get(), arena_bytes_));
  CountTraffic(kind, BytesSent(kind, call, size()));
  return Status::Ok();
}

Status OrderedCollectives::ReduceScatter(std::string_view name, ArenaOperand input,
                                         ArenaOperand output, int64_t elements,
                                         ReductionTypes types, bool accumulate) {
  ZG_RETURN_IF_ERROR(Start(CollectiveKind::kReduceScatter,
                           {"reduce_scatter", name, elements, input, output, types, accumulate}));
  if (HasOwnSums(types, accumulate)) {
    ZG_RETURN_IF_ERROR(OwnReduceScatter(At(input), At(output), elements, types.terms));
  } else {
    const int64_t bytes = elements * SizeOf(types.terms);
    ZG_RETURN_IF_ERROR(
        FoldParts(At(input), {bytes, bytes / size()}, types, accumulate, At(output)));
  }
  return Queued("reduce_scatter", name);
}

Status OrderedCollectives::AllGather(std::string_view name, ArenaOperand input, ArenaOperand output,
                                     int64_t part_bytes) {
  ZG_RETURN_IF_ERROR(
      Start(CollectiveKind::kAllGather, {"all_gather", name, part_bytes, input, output}));
  ZG_RETURN_IF_ERROR(GatherEqualParts(At(input), part_bytes, At(output)));
  return Queued("all_gather", name);
}

Status OrderedCollectives::AllReduce(std::string_view name, ArenaOperand input, ArenaOperand output,
                                     int64_t elements, ReductionTypes types, bool accumulate) {
  ZG_RETURN_IF_ERROR(Start(CollectiveKind::kAllReduce,
                           {"all_reduce", name, elements, input, output, types, accumulate}));
  if (HasOwnSums(types, accumulate)) {
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

Status OrderedCollectives::AllToAll(std::string_view name, ArenaOperand input, ArenaOperand output,
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
  ZG_RETURN_IF_ERROR(SendAndReceive(sent_, received_));
  ZG_RETURN_IF_ERROR(
      device_.Copy(At(output) + rank() * part_bytes, At(input) + rank() * part_bytes, part_bytes));
  return Queued("all_to_all", name);
}

// Part p of `input` goes to rank p; this rank's part of every rank is folded into `output`. `parts`
// are those of the terms.
Status OrderedCollectives::FoldParts(std::byte* input, const Parts& parts, ReductionTypes types,
                                     bool accumulate, std::byte* output) {
  std::byte* const workspace = arena_.get() + workspace_offset_;
  const int64_t term_bytes = SizeOf(types.terms);
  for (int64_t begin = 0; begin < parts.part; begin += chunk_bytes_) {
    const auto count = [&](int rank) {
      return std::clamp<int64_t>(parts.count(rank) - begin, 0, chunk_bytes_);
    };
    sent_.clear();
    received_.clear();
    for (int peer = 0; peer < size(); ++peer) {
      if (peer == rank()) continue;
      const int place = peer < rank() ? peer : peer - 1;
      if (count(peer) > 0) {
        sent_.push_back({input + parts.begin(peer) + begin, count(peer), peer});
      }
      if (count(rank()) > 0) {
        received_.push_back({workspace + place * chunk_bytes_, count(rank()), peer});
      }
    }
    ZG_RETURN_IF_ERROR(SendAndReceive(sent_, received_));
    if (count(rank()) == 0) continue;
    std::byte* const sums = output + begin / term_bytes * SizeOf(types.sum);
    FoldInputs inputs;
    inputs.start = accumulate ? sums : nullptr;
    inputs.own = input + parts.begin(rank()) + begin;
    inputs.received = workspace;
    inputs.received_stride_bytes = chunk_bytes_;
    inputs.rank = rank();
    inputs.num_ranks = size();
    ZG_RETURN_IF_ERROR(Fold(types, inputs, count(rank()) / term_bytes, sums));
  }
  return Status::Ok();
}

// `own`, in its place in `output`, goes to every rank.
Status OrderedCollectives::GatherParts(std::byte* own, const Parts& parts, std::byte* output) {
  if (parts.total == parts.part * size()) return GatherEqualParts(own, parts.part, output);
  sent_.clear();
  received_.clear();
  for (int peer = 0; peer < size(); ++peer) {
    if (peer == rank()) continue;
    if (parts.count(rank()) > 0) sent_.push_back({own, parts.count(rank()), peer});
    if (parts.count(peer) > 0) {
      received_.push_back({output + parts.begin(peer), parts.count(peer), peer});
    }
  }
  return SendAndReceive(sent_, received_);
}

Status OrderedCollectives::OwnReduceScatter(const std::byte*, std::byte*, int64_t, DType) {
  ZG_CHECK(false, "this transport has no sums of its own");
}

Status OrderedCollectives::OwnAllReduce(const std::byte*, std::byte*, int64_t, DType) {
  ZG_CHECK(false, "this transport has no sums of its own");
}

}  // namespace zg
