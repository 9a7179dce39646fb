#include "framework/comm/rendezvous.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <cstring>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

#include "framework/base/threads.h"

namespace zg {
namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

void PauseCore() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

std::atomic<int> threads_per_rank{1};

// Not FUTEX_PRIVATE_FLAG: the waiters may be other processes.
void FutexWait(const std::atomic<uint32_t>& word, uint32_t while_value, double limit_s) {
  timespec limit;
  limit.tv_sec = static_cast<time_t>(limit_s);
  limit.tv_nsec = static_cast<long>((limit_s - static_cast<double>(limit.tv_sec)) * 1e9);
  syscall(SYS_futex, &word, FUTEX_WAIT, while_value, &limit, nullptr, 0);
}

void FutexWakeAll(const std::atomic<uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

template <typename Words>
void StoreBytes(const void* bytes, size_t size, Words& words) {
  const auto* from = static_cast<const char*>(bytes);
  for (size_t i = 0; i * 8 < size; ++i) {
    uint64_t word = 0;
    std::memcpy(&word, from + i * 8, std::min<size_t>(8, size - i * 8));
    words[i].store(word, std::memory_order_relaxed);
  }
}

template <typename Words>
void LoadBytes(const Words& words, size_t size, void* bytes) {
  auto* to = static_cast<char*>(bytes);
  for (size_t i = 0; i * 8 < size; ++i) {
    const uint64_t word = words[i].load(std::memory_order_relaxed);
    std::memcpy(to + i * 8, &word, std::min<size_t>(8, size - i * 8));
  }
}

}  // namespace

int64_t ControlBlock::BytesFor(int num_ranks) {
  return static_cast<int64_t>(sizeof(ControlBlock) + num_ranks * sizeof(RankSlot));
}

void SetThreadsPerRank(int threads) { threads_per_rank.store(threads); }

ControlBlock* ControlBlock::Create(void* memory) { return new (memory) ControlBlock(); }

Rendezvous::Rendezvous(ControlBlock* block, ControlBlock* job_block, std::vector<int> ranks,
                       int rank, double timeout_s)
    : block_(block),
      job_block_(job_block),
      ranks_(std::move(ranks)),
      rank_(rank),
      num_ranks_(static_cast<int>(ranks_.size())),
      timeout_s_(timeout_s) {
  static_assert(std::is_trivially_copyable_v<CallRecord>);
  const bool has_core_for_each = num_ranks_ * threads_per_rank.load() <= NumUsableCores();
  num_spins_ = has_core_for_each ? 400 : 20;    // 20 us and 1 us
  yield_s_ = has_core_for_each ? 2e-3 : 20e-6;  // then sleep
}

Status Rendezvous::Enter(const CollectiveCall& call) {
  call_ = MakeCallRecord(call, call_.sequence + 1);
  ControlBlock::RankSlot& slot = block_->slot(rank_);
  StoreBytes(&call_, sizeof(call_), slot.records[call_.sequence % 2]);
  slot.num_calls.store(call_.sequence, std::memory_order_release);
  return Arrive(/*compare_calls=*/true);
}

Status Rendezvous::MeetAgain() { return Arrive(/*compare_calls=*/false); }

Status Rendezvous::Arrive(bool compare_calls) {
  ++num_barriers_;
  block_->slot(rank_).num_barriers.store(num_barriers_, std::memory_order_release);
  const uint64_t num_arrivals = block_->num_arrivals.fetch_add(1, std::memory_order_acq_rel) + 1;
  if (num_arrivals < num_barriers_ * num_ranks_) return Wait();

  // The last one to arrive checks for all, and releases the others only if everything is well.
  if (failed_rank() >= 0) return OtherRankFailed();
  if (compare_calls) {
    if (Status status = CompareCalls(); !status.ok()) {
      Fail(status);
      return status;
    }
  }
  block_->completed.store(static_cast<uint32_t>(num_barriers_));
  // Sequentially consistent, as in Sleep: either this sees the sleeper or the sleeper sees
  // `completed`.
  if (block_->num_sleepers.load() > 0) FutexWakeAll(block_->completed);
  return Status::Ok();
}

bool Rendezvous::IsComplete() const {
  // Equality is enough: the next barrier cannot complete without this rank.
  return block_->completed.load(std::memory_order_acquire) == static_cast<uint32_t>(num_barriers_);
}

Status Rendezvous::Wait() {
  for (int i = 0; i < num_spins_; ++i) {
    if (IsComplete()) return Status::Ok();
    PauseCore();
  }
  const Clock::time_point start = Clock::now();
  while (true) {
    if (IsComplete()) return Status::Ok();
    if (failed_rank() >= 0) return OtherRankFailed();
    const double waited_s = SecondsSince(start);
    if (waited_s >= timeout_s_) {
      const Status status = DeadlinePassed();
      Fail(status);
      return status;
    }
    if (waited_s < yield_s_) {
      sched_yield();
    } else {
      Sleep(timeout_s_ - waited_s);
    }
  }
}

void Rendezvous::Sleep(double limit_s) {
  // An upper limit for one sleep, because a failure's wake-up can be missed.
  constexpr double kMaxSleepSeconds = 0.02;
  block_->num_sleepers.fetch_add(1);
  FutexWait(block_->completed, static_cast<uint32_t>(num_barriers_ - 1),
            std::min(limit_s, kMaxSleepSeconds));
  block_->num_sleepers.fetch_sub(1);
}

void Rendezvous::Fail(const Status& status) {
  uint32_t nobody = 0;
  if (!job_block_->failed_rank_plus_1.compare_exchange_strong(nobody, job_rank() + 1)) return;
  const std::string message = status.ToString();
  const size_t size = std::min<size_t>(message.size(), ControlBlock::kFailureWords * 8 - 1);
  StoreBytes(message.c_str(), size + 1, job_block_->failure_message);
  job_block_->failure_is_written.store(1, std::memory_order_release);
  FutexWakeAll(block_->completed);
}

int Rendezvous::failed_rank() const {
  if (job_block_->failure_is_written.load(std::memory_order_acquire) == 0) return -1;
  return static_cast<int>(job_block_->failed_rank_plus_1.load(std::memory_order_relaxed)) - 1;
}

CallRecord Rendezvous::ReadRecord(int rank, int64_t sequence) const {
  CallRecord record;
  LoadBytes(block_->slot(rank).records[sequence % 2], sizeof(record), &record);
  return record;
}

Status Rendezvous::CompareCalls() const {
  for (int rank = 0; rank < num_ranks_; ++rank) {
    // The same number of barriers as this rank, but possibly another number of calls, if the ranks
    // disagree.
    const ControlBlock::RankSlot& slot = block_->slot(rank);
    const auto sequence = static_cast<int64_t>(slot.num_calls.load(std::memory_order_relaxed));
    static_assert(offsetof(CallRecord, hash) == 0);
    if (slot.records[sequence % 2][0].load(std::memory_order_relaxed) == call_.hash) continue;
    return CallMismatch(job_rank(), call_, ranks_[rank], ReadRecord(rank, sequence));
  }
  return Status::Ok();
}

Status Rendezvous::OtherRankFailed() const {
  char message[ControlBlock::kFailureWords * 8];
  LoadBytes(job_block_->failure_message, sizeof(message), message);
  message[sizeof(message) - 1] = '\0';
  return Aborted("{} on rank {}: rank {} failed: {}", Describe(call_), job_rank(), failed_rank(),
                 message);
}

Status Rendezvous::DeadlinePassed() const {
  constexpr size_t kMaxListed = 16;
  std::vector<int> missing;
  for (int rank = 0; rank < num_ranks_; ++rank) {
    const uint64_t barriers = block_->slot(rank).num_barriers.load(std::memory_order_acquire);
    if (barriers < num_barriers_) missing.push_back(rank);
  }
  if (missing.empty()) {  // The last one has arrived while this rank was polling.
    return DeadlineExceeded("{} on rank {}: complete only after {} s", Describe(call_), job_rank(),
                            timeout_s_);
  }
  std::string ranks;
  for (size_t i = 0; i < std::min(missing.size(), kMaxListed); ++i) {
    ranks += fmt::format("{}{}", i == 0 ? "" : ", ", ranks_[missing[i]]);
  }
  if (missing.size() > kMaxListed) ranks += fmt::format(", ... ({} in all)", missing.size());

  const auto sequence =
      static_cast<int64_t>(block_->slot(missing[0]).num_calls.load(std::memory_order_acquire));
  std::string where = "has not called anything yet";
  if (sequence == call_.sequence) {
    where = "is still in this call";
  } else if (sequence > 0) {
    where = "came last to " + Describe(ReadRecord(missing[0], sequence));
  }
  return DeadlineExceeded(
      "{} on rank {}: no sign of rank{} {} within {} s (ZG_COLLECTIVE_TIMEOUT_S); rank {} {}",
      Describe(call_), job_rank(), missing.size() == 1 ? "" : "s", ranks, timeout_s_,
      ranks_[missing[0]], where);
}

}  // namespace zg
