// SumPlan: what one rank of a group does in a sum over messages, so that every part takes its route
// (sum_route.h).
#pragma once

#include <cstdint>
#include <vector>

#include "framework/comm/collective_call.h"
#include "framework/comm/sum_route.h"

namespace zg {

// A stop of a part's route on this rank. Ranks are those of the group; part p is that of rank p.
struct SumTask {
  int part = 0;
  int from = -1;           // sends the sum to continue; -1: there is none, or it is here
  std::vector<int> terms;  // the ranks whose terms are added, in order
  int to = -1;             // gets the result; -1: this rank, which owns the part
  bool is_first = false;   // a sum to continue is the owner's
  bool is_last = false;    // the result is complete

  // The bytes of an element of the sums that it receives and sends on; 0: it does not.
  int64_t BytesFrom(const SumBytes& bytes) const {
    if (from < 0) return 0;
    return is_first ? bytes.sum : bytes.running;
  }
  int64_t BytesTo(const SumBytes& bytes) const {
    if (to < 0) return 0;
    return is_last ? bytes.sum : bytes.running;
  }
};

struct SentTerm {
  int part = 0;
  int to = 0;
};

struct SumPlan {
  std::vector<SumTask> tasks;   // by part
  std::vector<SentTerm> terms;  // this rank's terms of other ranks' tasks; to one rank in the order
                                // of its tasks
  int started_on = -1;          // the rank that this rank's sum to continue goes to; -1: none
  int returned_from = -1;       // the rank that this rank's complete sum comes from; -1: it is here
  // The bytes of scratch memory per element of a part: for what the tasks receive and send on. Of the
  // rank that needs most.
  int64_t buffer_bytes = 0;

  // The bytes that `rank`, whose plan this is, receives in a sum; `parts` are in elements.
  int64_t ReceivedBytes(int rank, const Parts& parts, const SumBytes& bytes) const;
};

// `hosts[r]` is the host of rank r of the group, and `fold_order` has its ranks in the order of the
// additions.
SumPlan PlanSum(const std::vector<int>& hosts, const std::vector<int>& fold_order, int rank,
                const SumBytes& bytes);

}  // namespace zg
