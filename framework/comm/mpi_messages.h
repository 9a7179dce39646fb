// The collectives as MPI messages, for ranks on several hosts. MPI's own sums are not used, because
// their order depends on the algorithm that MPI picks. A reduce-scatter is an all-to-all of the
// parts in chunks, which the owner folds in rank order as they arrive.
#pragma once

#include <memory>

#include "framework/base/status.h"
#include "framework/comm/communicator.h"
#include "framework/comm/mpi_calls.h"

namespace zg {

// `num_local_ranks` ranks of `comm` share this host's memory. Collective over `comm`.
StatusOr<std::unique_ptr<Communicator>> MakeMpiMessageCommunicator(MpiComm comm,
                                                                   int num_local_ranks,
                                                                   double timeout_s);

}  // namespace zg
