#include "framework/comm/cuda/stream_rendezvous.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <string>

#include "framework/base/check.h"
#include "framework/comm/cuda/poll_pause.h"
#include "framework/device/cuda/cuda_status.h"

namespace zg {
namespace {

using Clock = std::chrono::steady_clock;

// The interval at which the host polls the flags of its queue while it waits.
constexpr std::chrono::milliseconds kLookEvery(20);

// If nothing has changed in a queue for this many polls, it is not running, so values read at
// several moments are consistent.
constexpr int kStuckLooks = 5;

// The time for a queue to end after an error, before its memory is freed.
constexpr std::chrono::seconds kReleasePatience(10);

Status DriverStatus(CUresult code, std::string_view call) {
  if (code == CUDA_SUCCESS) return Status::Ok();
  const char* name = nullptr;
  if (cuGetErrorName(code, &name) != CUDA_SUCCESS || name == nullptr) name = "no such code";
  return FailedPrecondition("{}: {} ({})", call, name, static_cast<int>(code));
}

uint32_t WordOf(uint64_t hash) {
  const auto word = static_cast<uint32_t>(hash ^ (hash >> 32));
  return word == 0 ? 1 : word;
}

}  // namespace

StreamRendezvous::StreamRendezvous(Device* device, int rank, std::vector<PeerBlock*> blocks,
                                   double timeout_s)
    : device_(*device), rank_(rank), blocks_(std::move(blocks)), timeout_s_(timeout_s) {}

StatusOr<std::unique_ptr<StreamRendezvous>> StreamRendezvous::Create(Device* device, int rank,
                                                                     std::vector<PeerBlock*> blocks,
                                                                     double timeout_s) {
  std::unique_ptr<StreamRendezvous> made(
      new StreamRendezvous(device, rank, std::move(blocks), timeout_s));
  ZG_RETURN_IF_CUDA_ERROR(cudaStreamCreateWithFlags(&made->side_, cudaStreamNonBlocking));
  ZG_ASSIGN_OR_RETURN(made->end_, device->MakeEvent());
  ZG_ASSIGN_OR_RETURN(made->pinned_, device->AllocatePinned(sizeof(Look) + 2 * sizeof(uint32_t)));
  return made;
}

StreamRendezvous::~StreamRendezvous() {
  if (side_ != nullptr) cudaStreamDestroy(side_);
}

int StreamRendezvous::AddGroup(std::vector<int> ranks) {
  groups_.push_back(std::move(ranks));
  return static_cast<int>(groups_.size()) - 1;
}

Status StreamRendezvous::Enter(int group, const CollectiveCall& call) {
  ZG_RETURN_IF_ERROR(failure_);
  ZG_ASSIGN_OR_RETURN(current_, NumberOf(group, call));
  return Meet(Meeting::kEnter);
}

StatusOr<int> StreamRendezvous::NumberOf(int group, const CollectiveCall& call) {
  const int next = static_cast<int>(calls_.size());
  const CallRecord record = MakeCallRecord(call, next + 1);
  const auto [found, is_new] = numbers_.emplace(std::pair(record.hash, group), next);
  if (!is_new) return found->second;
  calls_.push_back({record, WordOf(record.hash), group});
  if (next < PeerBlock::kMaxCalls) {
    // Returns when it has read the record, which is not in pinned memory.
    ZG_RETURN_IF_CUDA_ERROR(cudaMemcpyAsync(&own()->calls[next], &record, sizeof(record),
                                            cudaMemcpyHostToDevice, side_));
  }
  return next;
}

Status StreamRendezvous::Meet(Meeting meeting) {
  const Call& call = calls_[current_];
  const std::vector<int>& ranks = groups_[call.group];
  if (ranks.size() == 1) return Status::Ok();
  const int at = static_cast<int>(meeting);
  const auto for_peers = [&](const auto& queue) {
    for (const int peer : ranks) {
      if (peer != rank_) queue(peer);
    }
  };
  const bool leaves = meeting == Meeting::kLeave;
  Write(&own()->position, QueuePosition{current_, true, meeting}.Packed());
  for_peers([&](int peer) { Write(&blocks_[peer]->flags[at][rank_], call.word); });
  for_peers([&](int peer) { WaitUntil(&own()->flags[at][peer], call.word); });
  for_peers([&](int peer) { Write(&own()->flags[at][peer], 0); });
  Write(&own()->position, QueuePosition{leaves ? -1 : current_}.Packed());
  return Submit(static_cast<cudaStream_t>(device_.stream()));
}

void StreamRendezvous::Write(uint32_t* to, uint32_t value) {
  CUstreamBatchMemOpParams operation = {};
  operation.writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
  operation.writeValue.address = reinterpret_cast<CUdeviceptr>(to);
  operation.writeValue.value = value;
  operation.writeValue.flags = CU_STREAM_WRITE_VALUE_DEFAULT;
  operations_.push_back(operation);
}

void StreamRendezvous::WaitUntil(uint32_t* flag, uint32_t value) {
  CUstreamBatchMemOpParams operation = {};
  operation.waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
  operation.waitValue.address = reinterpret_cast<CUdeviceptr>(flag);
  operation.waitValue.value = value;
  operation.waitValue.flags = CU_STREAM_WAIT_VALUE_EQ;
  operations_.push_back(operation);
}

Status StreamRendezvous::Submit(cudaStream_t stream) {
  const CUresult code =
      cuStreamBatchMemOp(stream, static_cast<unsigned>(operations_.size()), operations_.data(), 0);
  operations_.clear();
  return DriverStatus(code, "cuStreamBatchMemOp");
}

Status StreamRendezvous::Synchronize() {
  ZG_RETURN_IF_ERROR(failure_);
  if (num_ranks() == 1) return device_.Synchronize();
  ZG_RETURN_IF_ERROR(device_.JoinQueues());
  // Read after everything that was queued: tells whether the results can be trusted.
  auto* const failed = reinterpret_cast<uint32_t*>(pinned_.get() + sizeof(Look)) + 1;
  ZG_RETURN_IF_ERROR(device_.CopyOut(failed, &own()->failed_rank_plus_1, sizeof(*failed)));
  ZG_RETURN_IF_ERROR(end_->Record());
  ZG_RETURN_IF_ERROR(WaitFor(*end_));
  if (*failed == 0) return Status::Ok();
  return Fail(OtherRankFailed(static_cast<int>(*failed) - 1, {}));
}

Status StreamRendezvous::WaitFor(DeviceEvent& event) {
  ZG_RETURN_IF_ERROR(failure_);
  if (num_ranks() == 1) return event.Wait();
  Clock::time_point progress = Clock::now();
  Clock::time_point next_look = progress + kLookEvery;
  Look last = {};
  int num_same = 0;
  const PollPause pause;
  while (true) {
    const StatusOr<bool> is_done = event.IsDone();
    if (!is_done.ok()) return Fail(is_done.status());
    if (*is_done) return Status::Ok();
    const Clock::time_point now = Clock::now();
    if (now >= next_look) {
      Look look;
      ZG_ASSIGN_OR_RETURN(const bool stands_still, LookAt(rank_, &look));
      if (stands_still && std::memcmp(&look, &last, sizeof(look)) == 0) {
        ++num_same;
      } else {
        progress = now;
        num_same = 0;
      }
      last = look;
      Status problem = ProblemIn(look, /*is_stuck=*/num_same >= kStuckLooks);
      if (!problem.ok()) return Fail(std::move(problem));
      if (now - progress > std::chrono::duration<double>(timeout_s_)) {
        return Fail(DeadlinePassed(look));
      }
      next_look = Clock::now() + kLookEvery;
    }
    pause();
  }
}

Status StreamRendezvous::Read(const void* from, int64_t bytes, void* to) {
  ZG_RETURN_IF_CUDA_ERROR(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, side_));
  return Status::Ok();
}

StatusOr<bool> StreamRendezvous::LookAt(int rank, Look* look) {
  static_assert(offsetof(Look, position) == offsetof(PeerBlock, position));
  const PeerBlock* const block = blocks_[rank];
  auto* const pinned = reinterpret_cast<Look*>(pinned_.get());
  auto* const before = reinterpret_cast<uint32_t*>(pinned + 1);
  ZG_RETURN_IF_ERROR(Read(&block->position, sizeof(*before), before));
  ZG_RETURN_IF_ERROR(Read(block, offsetof(Look, position), pinned));
  ZG_RETURN_IF_ERROR(Read(&block->position, sizeof(*before), &pinned->position));
  ZG_RETURN_IF_CUDA_ERROR(cudaStreamSynchronize(side_));
  *look = *pinned;
  return look->position == *before;
}

// Returns an error if further waiting is pointless.
Status StreamRendezvous::ProblemIn(const Look& look, bool is_stuck) {
  const QueuePosition position = QueuePosition::Of(look.position);
  if (position.is_waiting) {
    const Call& call = calls_[position.call];
    for (const int peer : groups_[call.group]) {
      const uint32_t word = look.flags[static_cast<int>(position.meeting)][peer];
      if (peer == rank_ || word == 0 || word == call.word) continue;
      return is_stuck ? Mismatch(call, peer, word) : Status::Ok();
    }
  }
  if (look.failed_rank_plus_1 == 0) return Status::Ok();
  return OtherRankFailed(static_cast<int>(look.failed_rank_plus_1) - 1, look);
}

StatusOr<CallRecord> StreamRendezvous::CallOf(int rank, int number) {
  CallRecord record;
  if (number >= PeerBlock::kMaxCalls) return NotFound("call {} has no place", number);
  ZG_RETURN_IF_ERROR(Read(&blocks_[rank]->calls[number], sizeof(record), &record));
  ZG_RETURN_IF_CUDA_ERROR(cudaStreamSynchronize(side_));
  return record;
}

Status StreamRendezvous::Mismatch(const Call& call, int other_rank, uint32_t word) {
  for (int number = 0; number < PeerBlock::kMaxCalls; ++number) {
    ZG_ASSIGN_OR_RETURN(const CallRecord record, CallOf(other_rank, number));
    if (record.sequence == 0) break;
    if (WordOf(record.hash) != word) continue;
    return CallMismatch(rank_, call.record, other_rank, record);
  }
  return Aborted("{} on rank {}: rank {} calls something else", Describe(call.record), rank_,
                 other_rank);
}

Status StreamRendezvous::OtherRankFailed(int other_rank, const Look& look) const {
  const QueuePosition position = QueuePosition::Of(look.position);
  const std::string where =
      position.call < 0 ? "the work of the step" : Describe(calls_[position.call].record);
  return Aborted("{} on rank {}: rank {} failed; its own error says why", where, rank_, other_rank);
}

Status StreamRendezvous::DeadlinePassed(const Look& look) {
  const QueuePosition position = QueuePosition::Of(look.position);
  if (!position.is_waiting) {
    const std::string where = position.call < 0
                                  ? "the work of the step"
                                  : "the data of " + Describe(calls_[position.call].record);
    return DeadlineExceeded("{} on rank {}: {} makes no progress for {} s", where, rank_,
                            device_.name(), timeout_s_);
  }
  const Call& call = calls_[position.call];
  std::vector<int> missing;
  for (const int peer : groups_[call.group]) {
    const uint32_t word = look.flags[static_cast<int>(position.meeting)][peer];
    if (peer != rank_ && word != call.word) missing.push_back(peer);
  }
  if (missing.empty()) {  // The last one has arrived while this rank was polling.
    return DeadlineExceeded("{} on rank {}: complete only after {} s", Describe(call.record), rank_,
                            timeout_s_);
  }
  Look other = {};
  std::string where = "is in no collective";
  if (LookAt(missing[0], &other).ok() && other.position != 0) {
    const StatusOr<CallRecord> record = CallOf(missing[0], QueuePosition::Of(other.position).call);
    where = "is at " + (record.ok() ? Describe(*record) : std::string("another one"));
  }
  return DeadlineExceeded(
      "{} on rank {}: no sign of rank{} {} within {} s (ZG_COLLECTIVE_TIMEOUT_S); rank {} {}",
      Describe(call.record), rank_, missing.size() == 1 ? "" : "s", fmt::join(missing, ", "),
      timeout_s_, missing[0], where);
}

Status StreamRendezvous::Fail(Status status) {
  failure_ = std::move(status);
  for (int peer = 0; peer < num_ranks(); ++peer) {
    if (peer != rank_) Write(&blocks_[peer]->failed_rank_plus_1, static_cast<uint32_t>(rank_) + 1);
  }
  // The other ranks are told first, because everything after this is invalid.
  if (Submit(side_).ok()) Release();
  return failure_;
}

// Lets the queue run to its end, past every rank that it waits for. Then its memory can be freed,
// which would otherwise wait for it.
void StreamRendezvous::Release() {
  if (!device_.JoinQueues().ok() || !end_->Record().ok()) return;
  const Clock::time_point until = Clock::now() + kReleasePatience;
  const PollPause pause;
  while (Clock::now() < until) {
    const StatusOr<bool> is_done = end_->IsDone();
    if (!is_done.ok() || *is_done) return;
    Look look;
    const StatusOr<bool> stands_still = LookAt(rank_, &look);
    if (!stands_still.ok()) return;
    const QueuePosition position = QueuePosition::Of(look.position);
    if (*stands_still && position.is_waiting) {
      const Call& call = calls_[position.call];
      for (const int peer : groups_[call.group]) {
        Write(&own()->flags[static_cast<int>(position.meeting)][peer], call.word);
      }
      if (!Submit(side_).ok()) return;
    }
    pause();
  }
}

}  // namespace zg
