#include "framework/comm/mpi_messages.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "framework/comm/available_memory.h"
#include "framework/comm/collective_call.h"
#include "framework/comm/left_fold.h"
#include "framework/comm/mapped_memory.h"
#include "framework/comm/message_chunks.h"

namespace zg {
namespace {

constexpr int kTagRecord = 1;
constexpr int kTagPart = 2;
constexpr int kTagChunk = 3;

// A count of MPI is an int.
constexpr int64_t kMaxMessageBytes = int64_t{1} << 30;

// Parts [begin(r), begin(r + 1)) of `total` bytes, `part` each except for the last ones.
struct Parts {
  int64_t total = 0;
  int64_t part = 0;
  int64_t begin(int rank) const { return std::min(rank * part, total); }
  int64_t count(int rank) const { return begin(rank + 1) - begin(rank); }
};

class MpiMessageCommunicator : public Communicator {
 public:
  MpiMessageCommunicator(MpiComm comm, int num_local_ranks, double timeout_s)
      : comm_(std::move(comm)),
        rank_(comm_.rank()),
        num_ranks_(comm_.size()),
        num_local_ranks_(num_local_ranks),
        timeout_s_(timeout_s),
        chunk_bytes_(MessageChunkBytes(num_ranks_)),
        peer_records_(num_ranks_) {}

  ~MpiMessageCommunicator() override {
    // MPI may still write to the buffers of messages that were given up.
    if (has_failed_) new MappedMemory(std::move(arena_));
  }

  int rank() const override { return rank_; }
  int size() const override { return num_ranks_; }
  std::string_view transport() const override { return "messages"; }
  int64_t workspace_bytes() const override { return MessageWorkspaceBytes(num_ranks_); }

  StatusOr<std::byte*> AllocateArena(int64_t bytes, int64_t workspace_offset) override;
  Status ReduceScatter(std::string_view name, ArenaOperand input, ArenaOperand output,
                       int64_t elements, ReductionTypes types, bool accumulate) override;
  Status AllGather(std::string_view name, ArenaOperand input, ArenaOperand output,
                   int64_t part_bytes) override;
  Status AllReduce(std::string_view name, ArenaOperand input, ArenaOperand output, int64_t elements,
                   ReductionTypes types, bool accumulate) override;
  Status AllToAll(std::string_view name, ArenaOperand input, ArenaOperand output,
                  int64_t part_bytes) override;
  Status Barrier(std::string_view name) override;
  StatusOr<std::vector<std::string>> Exchange(std::string_view name,
                                              const std::string& mine) override;
  void Abort(const Status& status) override { PrintAndAbort(status, rank_); }

 private:
  Status Start(CollectiveKind kind, const CollectiveCall& call);
  // Tells every peer what this rank calls and hears what they call.
  Status Enter(const CollectiveCall& call);
  Status Finish(MpiRequests& requests);

  // A message of any size, as several if need be.
  Status SendPart(const std::byte* data, int64_t bytes, int peer, MpiRequests& requests);
  Status ReceivePart(std::byte* data, int64_t bytes, int peer, MpiRequests& requests);

  Status FoldParts(const std::byte* input, const Parts& parts, ReductionTypes types,
                   bool accumulate, std::byte* output);
  Status GatherParts(const std::byte* own, const Parts& parts, std::byte* output);

  std::byte* At(ArenaOperand operand) const { return arena_.data() + operand.OffsetOn(rank_); }

  const MpiComm comm_;
  const int rank_;
  const int num_ranks_;
  const int num_local_ranks_;
  const double timeout_s_;
  const int64_t chunk_bytes_;

  MappedMemory arena_;
  int64_t arena_bytes_ = 0;
  int64_t workspace_offset_ = 0;
  CallRecord call_;  // the one entered last
  std::vector<CallRecord> peer_records_;
  std::vector<const void*> fold_inputs_;
  bool has_failed_ = false;
};

StatusOr<std::byte*> MpiMessageCommunicator::AllocateArena(int64_t bytes,
                                                           int64_t workspace_offset) {
  ZG_RETURN_IF_ERROR(
      Enter({"allocate_arena", fmt::format("{} bytes", bytes), bytes, {workspace_offset, 0}, {}}));
  arena_ = MappedMemory();
  arena_bytes_ = 0;
  ZG_RETURN_IF_ERROR(Barrier("arenas are unmapped"));
  const auto check = [&]() -> Status {
    const int64_t workspace_end = workspace_offset + workspace_bytes();
    if (workspace_offset < 0 || workspace_offset % 64 != 0 || workspace_end > bytes) {
      return InvalidArgument("the workspace [{}, {}) is not in the arena of {} bytes",
                             workspace_offset, workspace_end, bytes);
    }
    ZG_ASSIGN_OR_RETURN(const AvailableMemory available, ReadAvailableMemory());
    return CheckMemoryFor(bytes, num_local_ranks_, available);
  };
  ZG_RETURN_IF_ERROR(ExchangeStatus(*this, "check memory", check()));

  StatusOr<MappedMemory> arena = MappedMemory::Private(bytes);
  ZG_RETURN_IF_ERROR(ExchangeStatus(*this, "allocate arena", arena.status()));
  arena_ = std::move(*arena);
  arena_bytes_ = bytes;
  workspace_offset_ = workspace_offset;
  return arena_.data();
}

Status MpiMessageCommunicator::Start(CollectiveKind kind, const CollectiveCall& call) {
  ZG_RETURN_IF_ERROR(CheckOperands(kind, call, rank_, num_ranks_, arena_.data(), arena_bytes_));
  CountTraffic(kind, BytesSent(kind, call, num_ranks_));
  return Enter(call);
}

Status MpiMessageCommunicator::Enter(const CollectiveCall& call) {
  call_ = MakeCallRecord(call, call_.sequence + 1);
  MpiRequests requests;
  for (int peer = 0; peer < num_ranks_; ++peer) {
    if (peer == rank_) continue;
    ZG_RETURN_IF_ERROR(
        requests.Receive(comm_.get(), &peer_records_[peer], sizeof(CallRecord), peer, kTagRecord));
    ZG_RETURN_IF_ERROR(requests.Send(comm_.get(), &call_, sizeof(CallRecord), peer, kTagRecord));
  }
  ZG_RETURN_IF_ERROR(Finish(requests));
  for (int peer = 0; peer < num_ranks_; ++peer) {
    if (peer == rank_ || peer_records_[peer].hash == call_.hash) continue;
    return CallMismatch(rank_, call_, peer, peer_records_[peer]);
  }
  return Status::Ok();
}

Status MpiMessageCommunicator::Finish(MpiRequests& requests) {
  const Status status =
      requests.Wait(fmt::format("{} on rank {}", Describe(call_), rank_), timeout_s_);
  has_failed_ |= !status.ok();
  return status;
}

Status MpiMessageCommunicator::SendPart(const std::byte* data, int64_t bytes, int peer,
                                        MpiRequests& requests) {
  for (int64_t begin = 0; begin < bytes; begin += kMaxMessageBytes) {
    const int64_t count = std::min(kMaxMessageBytes, bytes - begin);
    ZG_RETURN_IF_ERROR(requests.Send(comm_.get(), data + begin, count, peer, kTagPart));
  }
  return Status::Ok();
}

Status MpiMessageCommunicator::ReceivePart(std::byte* data, int64_t bytes, int peer,
                                           MpiRequests& requests) {
  for (int64_t begin = 0; begin < bytes; begin += kMaxMessageBytes) {
    const int64_t count = std::min(kMaxMessageBytes, bytes - begin);
    ZG_RETURN_IF_ERROR(requests.Receive(comm_.get(), data + begin, count, peer, kTagPart));
  }
  return Status::Ok();
}

// Part p of `input` goes to rank p; this rank's part of every rank is folded into `output`. `parts`
// are those of the terms.
Status MpiMessageCommunicator::FoldParts(const std::byte* input, const Parts& parts,
                                         ReductionTypes types, bool accumulate, std::byte* output) {
  const int64_t chunk = chunk_bytes_;
  std::byte* const workspace = arena_.data() + workspace_offset_;
  const auto received = [&](int slot, int peer) {
    const int place = peer < rank_ ? peer : peer - 1;
    return workspace + (slot * (num_ranks_ - 1) + place) * chunk;
  };
  const auto chunk_count = [&](int rank, int64_t step) {
    return std::clamp<int64_t>(parts.count(rank) - step * chunk, 0, chunk);
  };
  const int64_t num_steps = (parts.part + chunk - 1) / chunk;

  // Each rank is at most kMessageDepth steps ahead of any other, so that no message has to be
  // buffered.
  std::array<MpiRequests, kMessageDepth> requests;
  const auto post = [&](int64_t step) -> Status {
    const int slot = static_cast<int>(step % kMessageDepth);
    for (int i = 1; i < num_ranks_; ++i) {
      const int to = (rank_ + i) % num_ranks_;
      const int from = (rank_ + num_ranks_ - i) % num_ranks_;
      if (const int64_t count = chunk_count(rank_, step); count > 0) {
        ZG_RETURN_IF_ERROR(
            requests[slot].Receive(comm_.get(), received(slot, from), count, from, kTagChunk));
      }
      if (const int64_t count = chunk_count(to, step); count > 0) {
        ZG_RETURN_IF_ERROR(requests[slot].Send(comm_.get(), input + parts.begin(to) + step * chunk,
                                               count, to, kTagChunk));
      }
    }
    return Status::Ok();
  };

  for (int64_t step = 0; step < std::min<int64_t>(kMessageDepth, num_steps); ++step) {
    ZG_RETURN_IF_ERROR(post(step));
  }
  for (int64_t step = 0; step < num_steps; ++step) {
    const int slot = static_cast<int>(step % kMessageDepth);
    ZG_RETURN_IF_ERROR(Finish(requests[slot]));
    if (const int64_t count = chunk_count(rank_, step); count > 0) {
      const int64_t elements = count / SizeOf(types.terms);
      std::byte* const sums = output + step * (chunk / SizeOf(types.terms)) * SizeOf(types.sum);
      fold_inputs_.clear();
      if (accumulate) fold_inputs_.push_back(sums);
      for (int rank = 0; rank < num_ranks_; ++rank) {
        fold_inputs_.push_back(rank == rank_ ? input + parts.begin(rank_) + step * chunk
                                             : received(slot, rank));
      }
      LeftFold(types, accumulate, fold_inputs_.data(), static_cast<int>(fold_inputs_.size()),
               elements, sums);
    }
    if (step + kMessageDepth < num_steps) ZG_RETURN_IF_ERROR(post(step + kMessageDepth));
  }
  return Status::Ok();
}

// `own` goes to every rank, and into its place in `output`.
Status MpiMessageCommunicator::GatherParts(const std::byte* own, const Parts& parts,
                                           std::byte* output) {
  MpiRequests requests;
  for (int i = 1; i < num_ranks_; ++i) {
    const int to = (rank_ + i) % num_ranks_;
    const int from = (rank_ + num_ranks_ - i) % num_ranks_;
    ZG_RETURN_IF_ERROR(ReceivePart(output + parts.begin(from), parts.count(from), from, requests));
    ZG_RETURN_IF_ERROR(SendPart(own, parts.count(rank_), to, requests));
  }
  std::byte* const place = output + parts.begin(rank_);
  if (own != place) std::memcpy(place, own, parts.count(rank_));
  return Finish(requests);
}

Status MpiMessageCommunicator::ReduceScatter(std::string_view name, ArenaOperand input,
                                             ArenaOperand output, int64_t elements,
                                             ReductionTypes types, bool accumulate) {
  ZG_RETURN_IF_ERROR(Start(CollectiveKind::kReduceScatter,
                           {"reduce_scatter", name, elements, input, output, types, accumulate}));
  const int64_t bytes = elements * SizeOf(types.terms);
  return FoldParts(At(input), {bytes, bytes / num_ranks_}, types, accumulate, At(output));
}

Status MpiMessageCommunicator::AllGather(std::string_view name, ArenaOperand input,
                                         ArenaOperand output, int64_t part_bytes) {
  ZG_RETURN_IF_ERROR(
      Start(CollectiveKind::kAllGather, {"all_gather", name, part_bytes, input, output}));
  return GatherParts(At(input), {part_bytes * num_ranks_, part_bytes}, At(output));
}

Status MpiMessageCommunicator::AllReduce(std::string_view name, ArenaOperand input,
                                         ArenaOperand output, int64_t elements,
                                         ReductionTypes types, bool accumulate) {
  ZG_RETURN_IF_ERROR(Start(CollectiveKind::kAllReduce,
                           {"all_reduce", name, elements, input, output, types, accumulate}));
  const int64_t part = (elements + num_ranks_ - 1) / num_ranks_;
  const Parts terms{elements * SizeOf(types.terms), part * SizeOf(types.terms)};
  const Parts sums{elements * SizeOf(types.sum), part * SizeOf(types.sum)};
  std::byte* const own_part = At(output) + sums.begin(rank_);
  ZG_RETURN_IF_ERROR(FoldParts(At(input), terms, types, accumulate, own_part));
  return GatherParts(own_part, sums, At(output));
}

Status MpiMessageCommunicator::AllToAll(std::string_view name, ArenaOperand input,
                                        ArenaOperand output, int64_t part_bytes) {
  ZG_RETURN_IF_ERROR(
      Start(CollectiveKind::kAllToAll, {"all_to_all", name, part_bytes, input, output}));
  MpiRequests requests;
  for (int i = 1; i < num_ranks_; ++i) {
    const int to = (rank_ + i) % num_ranks_;
    const int from = (rank_ + num_ranks_ - i) % num_ranks_;
    ZG_RETURN_IF_ERROR(ReceivePart(At(output) + from * part_bytes, part_bytes, from, requests));
    ZG_RETURN_IF_ERROR(SendPart(At(input) + to * part_bytes, part_bytes, to, requests));
  }
  std::memcpy(At(output) + rank_ * part_bytes, At(input) + rank_ * part_bytes, part_bytes);
  return Finish(requests);
}

Status MpiMessageCommunicator::Barrier(std::string_view name) {
  return Enter({"barrier", name, 0, {}, {}});
}

StatusOr<std::vector<std::string>> MpiMessageCommunicator::Exchange(std::string_view name,
                                                                    const std::string& mine) {
  ZG_RETURN_IF_ERROR(Enter({"exchange", name, 0, {}, {}}));
  return GatherStrings(comm_.get(), mine, name, timeout_s_);
}

}  // namespace

StatusOr<std::unique_ptr<Communicator>> MakeMpiMessageCommunicator(MpiComm comm,
                                                                   int num_local_ranks,
                                                                   double timeout_s) {
  return std::unique_ptr<Communicator>(
      new MpiMessageCommunicator(std::move(comm), num_local_ranks, timeout_s));
}

}  // namespace zg
