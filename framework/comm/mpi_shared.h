// The ranks of one host as processes that map each other's arenas: peer_memory_group.h over
// shared_memory.h. MPI itself only carries the addresses of the memory, and the control plane.
#pragma once

#include <memory>

#include "framework/base/status.h"
#include "framework/comm/communicator.h"
#include "framework/comm/mpi_calls.h"

namespace zg {

// Collective over `comm`, whose ranks are all on this host.
StatusOr<std::unique_ptr<Communicator>> MakeMpiSharedCommunicator(MpiComm comm, double timeout_s);

}  // namespace zg
