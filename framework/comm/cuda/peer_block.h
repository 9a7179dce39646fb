// PeerBlock: the data that a rank keeps in its GPU's memory for the ranks that map it: the flags
// with which their queues synchronise, and the information to report when one of them does not
// arrive.
#pragma once

#include <cstdint>

#include "framework/comm/collective_call.h"
#include "framework/comm/cuda/fold_peers.h"

namespace zg {

// The points at which a collective's ranks synchronise: all inputs are ready; in an all-reduce, all
// parts are folded; all ranks have read what they need.
enum class Meeting { kEnter, kMiddle, kLeave };
inline constexpr int kNumMeetings = 3;

// In zeroed memory. Other ranks' queues and this rank's own write `flags`, the host of another rank
// writes `failed`, this rank's own queue `position`, and its host `calls`.
struct PeerBlock {
  static constexpr int kMaxRanks = PeerTerms::kMaxRanks;
  static constexpr int kMaxCalls = 512;

  uint32_t flags[kNumMeetings][kMaxRanks];  // by rank: the word of the call that it has reached
  uint32_t failed_rank_plus_1;
  uint32_t position;            // QueuePosition::Packed
  CallRecord calls[kMaxCalls];  // by number; names of later calls are not known
};

// The position of a rank's queue.
struct QueuePosition {
  int call = -1;            // -1: not in a collective
  bool is_waiting = false;  // at `meeting`; otherwise the call is moving data
  Meeting meeting = Meeting::kEnter;

  uint32_t Packed() const {
    if (call < 0) return 0;
    return static_cast<uint32_t>(call) * 4 + (is_waiting ? static_cast<uint32_t>(meeting) : 3) + 1;
  }
  static QueuePosition Of(uint32_t packed) {
    if (packed == 0) return {};
    const uint32_t state = (packed - 1) % 4;
    return {static_cast<int>((packed - 1) / 4), state < 3,
            state < 3 ? static_cast<Meeting>(state) : Meeting::kEnter};
  }
};

}  // namespace zg
