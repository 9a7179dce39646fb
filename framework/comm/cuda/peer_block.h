// PeerBlock: what a rank on a GPU keeps in that GPU's memory for the ranks that map it: the flags at
// which their queues meet, and what they can tell of each other when one does not come.
#pragma once

#include <cstdint>

#include "framework/comm/collective_call.h"
#include "framework/comm/cuda/fold_peers.h"

namespace zg {

// Where a collective's ranks meet: all inputs are ready; in an all-reduce, all parts are folded;
// everybody has read what it needs.
enum class Meeting { kEnter, kMiddle, kLeave };
inline constexpr int kNumMeetings = 3;

// In zeroed memory. `flags` are written by other ranks' queues and by this rank's own, `failed` by
// the host of another rank, `position` by this rank's own queue, `calls` by its host.
struct PeerBlock {
  static constexpr int kMaxRanks = PeerTerms::kMaxRanks;
  static constexpr int kMaxCalls = 512;

  uint32_t flags[kNumMeetings][kMaxRanks];  // of each rank: the word of the call it has come to
  uint32_t failed_rank_plus_1;
  uint32_t position;            // QueuePosition::Packed
  CallRecord calls[kMaxCalls];  // by number; of later ones nobody can tell the name
};

// Where the queue of a rank is.
struct QueuePosition {
  int call = -1;            // -1: in no collective
  bool is_waiting = false;  // at `meeting`; else the call moves data
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
