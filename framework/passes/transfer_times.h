// PlanTransferTimes: when the transfers of a sequence of nodes start and when their waits are,
// under a limit on the bytes that this keeps alive. Times are positions in the sequence.
#pragma once

#include <cstdint>
#include <vector>

namespace zg {

struct TransferTimes {
  int place = 0;      // its position in the program
  int earliest = 0;   // where its input is ready
  int needed = 0;     // the first reader of its result; the end: there is none
  int64_t bytes = 0;  // kept alive because it runs beside others

  // As planned, each before the node at the position. Equal: the transfer stays in its place.
  int start = 0;
  int wait = 0;

  bool is_ahead() const { return earliest < place; }  // or at least may be
};

// Transfers that may start ahead of their places do so in the order of these, as early as they fit.
// The others start in their places, and their waits come as late as they fit: if one of them does
// not fit, the oldest make room. Both kinds together have `max_bytes`; if there are both, each gets
// half. `times` are in the order of their places, which are below `end`.
void PlanTransferTimes(int64_t max_bytes, int end, std::vector<TransferTimes*> times);

}  // namespace zg
