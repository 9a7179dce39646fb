// Rendezvous: synchronises ranks that share memory before and after they touch each other's arenas.
// It is a barrier that compares the calls of the ranks, gives up at a deadline, and ends early if a
// rank has failed. The shared part, the ControlBlock, is in memory that all ranks map; a Rendezvous
// is one rank's end of it.
//
//   ZG_RETURN_IF_ERROR(rendezvous.Enter(call));  // peers' inputs are ready
//   ... read from the peers' arenas ...
//   return rendezvous.MeetAgain();               // peers have read mine
//
// A group of ranks has a control block of its own. The failure of a rank is recorded in the control
// block of the job, so that every group sees it.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "framework/base/status.h"
#include "framework/comm/collective_call.h"

namespace zg {

// Only Rendezvous accesses the members. All words are lock-free atomics, which work across
// processes.
class ControlBlock {
 public:
  static int64_t BytesFor(int num_ranks);
  // Makes a control block in BytesFor(num_ranks) zeroed bytes, aligned to a cache line.
  static ControlBlock* Create(void* memory);

 private:
  friend class Rendezvous;

  static constexpr int kRecordWords = sizeof(CallRecord) / 8;
  static constexpr int kFailureWords = 128;
  using AtomicWord = std::atomic<uint64_t>;
  static_assert(AtomicWord::is_always_lock_free);

  // The record that one rank publishes. It is rewritten two calls later, when nobody can be reading
  // it.
  struct alignas(64) RankSlot {
    AtomicWord num_barriers;  // barriers that the rank has arrived at
    AtomicWord num_calls;     // calls that the rank has entered
    alignas(64) std::array<std::array<AtomicWord, kRecordWords>, 2> records;
  };

  ControlBlock() = default;
  RankSlot& slot(int rank) { return reinterpret_cast<RankSlot*>(this + 1)[rank]; }

  // Counts all ranks and all barriers: the last to arrive at barrier k finds k * num_ranks - 1.
  alignas(64) AtomicWord num_arrivals{0};
  // The number of the last complete barrier, modulo 2^32; ranks sleep on it (futex).
  alignas(64) std::atomic<uint32_t> completed{0};
  std::atomic<uint32_t> num_sleepers{0};
  // In the job's control block: the first rank to fail, plus 1; its message is there once
  // `failure_is_written`.
  alignas(64) std::atomic<uint32_t> failed_rank_plus_1{0};
  std::atomic<uint32_t> failure_is_written{0};
  std::array<AtomicWord, kFailureWords> failure_message{};
};

// The number of threads that each rank of this job computes with; must be set before its first
// Rendezvous. The default is 1.
void SetThreadsPerRank(int threads);

class Rendezvous {
 public:
  // `ranks` of the job meet at `block`; this one has index `rank`. `job_block` is that of all
  // ranks, and may be the same.
  Rendezvous(ControlBlock* block, ControlBlock* job_block, std::vector<int> ranks, int rank,
             double timeout_s);

  // Waits until every rank has arrived. Errors: a rank calls another collective, does not arrive
  // before the deadline, or has failed. After an error no rank may use the block any more.
  Status Enter(const CollectiveCall& call);

  // The word of a rank's call; valid after Enter has returned, until the next call.
  uint64_t WordOf(int rank) const { return ReadRecord(rank, call_.sequence).word; }

  // Waits for every rank again, within the call that was entered last.
  Status MeetAgain();

  // Makes waiting ranks return Aborted with this message. Only the first failure of all ranks
  // counts.
  void Fail(const Status& status);

  // The first rank of the job that failed, or -1.
  int failed_rank() const;

  ControlBlock* job_block() const { return job_block_; }
  double timeout_s() const { return timeout_s_; }

 private:
  Status Arrive(bool compare_calls);
  Status Wait();
  bool IsComplete() const;
  void Sleep(double limit_s);

  CallRecord ReadRecord(int rank, int64_t sequence) const;
  Status CompareCalls() const;
  Status OtherRankFailed() const;
  Status DeadlinePassed() const;

  int job_rank() const { return ranks_[rank_]; }

  ControlBlock* const block_;
  ControlBlock* const job_block_;
  const std::vector<int> ranks_;
  const int rank_;  // Parameters of waiting. Spinning makes sense only if there is a core for every
                    // thread of the ranks, because then the others are running now.
  const int num_ranks_;
  const double timeout_s_;
  // Spinning: if there is a core for every thread of the ranks, the others are running now.
  int num_spins_;
  double yield_s_;

  uint64_t num_barriers_ = 0;  // that this rank has arrived at
  CallRecord call_;            // the one entered last
};

}  // namespace zg
