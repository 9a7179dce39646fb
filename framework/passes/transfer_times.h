// PlanTransferTimes: when the transfers of a sequence of nodes start and when somebody waits for them,
// under a limit of the bytes that this keeps alive. Times are positions in the sequence.
#pragma once

#include <cstdint>
#include <vector>

namespace zg {

struct TransferTimes {
  int place = 0;      // where it stands
  int earliest = 0;   // where what it reads is there
  int needed = 0;     // where somebody reads what it writes; the end: nobody does
  int64_t bytes = 0;  // alive because it runs beside others

  // As planned, each before the node at the position. Equal: it stays in its place.
  int start = 0;
  int wait = 0;

  bool is_ahead() const { return earliest < place; }  // or at least may be
};

// Those that may start ahead of their places do so in the order of these, as early as they fit; the
// others start in their places and are waited for as late as they fit: when one of them does not, the
// oldest make room. Both kinds have `max_bytes` together, or half each where there are both. `times`
// are in the order of their places, which are below `end`.
void PlanTransferTimes(int64_t max_bytes, int end, std::vector<TransferTimes*> times);

}  // namespace zg
