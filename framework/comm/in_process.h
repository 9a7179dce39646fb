// Ranks as threads of one process: the same collectives on real data, for tests and for simulating
// jobs of up to a thousand ranks.
//
//   Status status = RunRanks(4, [](Communicator& communicator) -> Status {
//     ZG_ASSIGN_OR_RETURN(std::byte* arena, communicator.arena().Allocate(1 << 20, 0));
//     ...
//   });
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "framework/base/env.h"
#include "framework/base/status.h"
#include "framework/comm/communicator.h"

namespace zg {

class InProcessGroup {
 public:
  explicit InProcessGroup(int num_ranks, double timeout_s = kDefaultCollectiveTimeoutSeconds);
  ~InProcessGroup();

  int size() const;

  // Only one thread at a time may use a rank's communicator. Its Abort makes the other ranks'
  // collectives return Aborted, and returns.
  Communicator& communicator(int rank);

  // The first rank that failed in a collective or called Abort, or -1.
  int failed_rank() const;

 private:
  struct Shared;
  class InProcessArena;
  class InProcessCommunicator;
  std::vector<std::unique_ptr<InProcessCommunicator>> communicators_;
};

// Runs `rank_main` once per rank, each in its own thread, and returns the error of the rank that
// failed first, or ok. An error returned by a rank ends the others' collectives. The deadline is
// ZG_COLLECTIVE_TIMEOUT_S unless given.
Status RunRanks(int num_ranks, const std::function<Status(Communicator&)>& rank_main);
Status RunRanks(int num_ranks, double timeout_s,
                const std::function<Status(Communicator&)>& rank_main);

}  // namespace zg
