// Ranks as processes started by mpirun: the communicator of a training job on CPUs.
//
//   ZG_ASSIGN_OR_RETURN(auto session, MpiSession::Start());
//   ZG_ASSIGN_OR_RETURN(auto communicator, MakeMpiCommunicator());
//
// Between ranks of one host, tensors go through mapped memory (mpi_shared.h), between hosts through
// messages (mpi_messages.h); same order of sums, same bits. ZG_COMM forces one of them.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "framework/base/env.h"
#include "framework/base/status.h"
#include "framework/comm/communicator.h"

namespace zg {

// MPI is initialised while this exists, unless it was initialised before. The thread that starts
// the session uses the communicators; where MPI allows it (MPI_THREAD_MULTIPLE), another thread may
// use groups made for that (Communicator::GroupOf).
class MpiSession {
 public:
  static StatusOr<std::unique_ptr<MpiSession>> Start();
  ~MpiSession();
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;

 private:
  explicit MpiSession(bool is_owner) : is_owner_(is_owner) {}
  const bool is_owner_;
};

struct MpiOptions {
  std::optional<CommTransport> transport;  // default: ZG_COMM
  std::optional<double> timeout_s;         // default: ZG_COLLECTIVE_TIMEOUT_S
  std::vector<int> hosts = {};  // of every rank: equal for those on one host; empty: as they are
};

// The communicator of this rank among all ranks of the job. Every rank must call this, with the
// same options; an error on one rank is an error on all. Errors: the ranks do not agree on the
// transport; it is `shared`, but the ranks are on several hosts or cannot map each other's memory.
StatusOr<std::unique_ptr<Communicator>> MakeMpiCommunicator(const MpiOptions& options = {});

}  // namespace zg
