// The collectives as MPI messages, for ranks on several hosts. MPI's own sums are not used, because
// their order depends on the algorithm that MPI picks. A reduce-scatter sends each
// part along its route (message_sum.h). A gathered part goes to each other host once
// (message_rounds.h).
#pragma once

#include <memory>
#include <vector>

#include "framework/base/status.h"
#include "framework/comm/communicator.h"
#include "framework/comm/mpi_calls.h"

namespace zg {

// `hosts[r]` is the host of rank r: any number, the same for ranks that share a host and its memory.
// Collective over `comm`.
StatusOr<std::unique_ptr<Communicator>> MakeMpiMessageCommunicator(MpiComm comm,
                                                                   std::vector<int> hosts,
                                                                   double timeout_s);

}  // namespace zg
