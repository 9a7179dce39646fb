#include "framework/comm/mpi_communicator.h"

#include <mpi.h>

#include <algorithm>
#include <string>
#include <vector>

#include "framework/comm/mpi_calls.h"
#include "framework/comm/mpi_messages.h"
#include "framework/comm/mpi_shared.h"

namespace zg {
namespace {

struct Settings {
  CommTransport transport = CommTransport::kAuto;
  double timeout_s = 0;
};

StatusOr<Settings> ReadSettings(const MpiOptions& options) {
  Settings settings;
  if (options.transport) {
    settings.transport = *options.transport;
  } else {
    ZG_ASSIGN_OR_RETURN(settings.transport, CommTransportFromEnvironment());
  }
  if (options.timeout_s) {
    settings.timeout_s = *options.timeout_s;
  } else {
    ZG_ASSIGN_OR_RETURN(settings.timeout_s, CollectiveTimeoutSeconds());
  }
  return settings;
}

// mpirun forwards environment variables to other hosts only on request (-x).
Status CheckSameTransport(MPI_Comm comm, const Settings& settings) {
  ZG_ASSIGN_OR_RETURN(const std::vector<std::string> all,
                      GatherStrings(comm, std::string(CommTransportName(settings.transport)),
                                    "agreeing on a transport", settings.timeout_s));
  for (size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank] == all[0]) continue;
    return FailedPrecondition(
        "the ranks disagree on the transport: {} on rank 0, {} on rank {}; give every rank the "
        "same "
        "ZG_COMM (mpirun -x ZG_COMM)",
        all[0], all[rank], rank);
  }
  return Status::Ok();
}

// The host of every rank, as the lowest rank on it. Collective.
StatusOr<std::vector<int>> HostsOfRanks(const MpiComm& world, double timeout_s) {
  ZG_ASSIGN_OR_RETURN(const MpiComm local, MpiComm::OfThisHost(world.get()));
  ZG_ASSIGN_OR_RETURN(const std::vector<std::string> neighbours,
                      GatherStrings(local.get(), std::to_string(world.rank()),
                                    "counting the ranks of each host", timeout_s));
  ZG_ASSIGN_OR_RETURN(const std::vector<std::string> lowest,
                      GatherStrings(world.get(), neighbours[0], "telling hosts apart", timeout_s));
  std::vector<int> hosts;
  for (const std::string& host : lowest) hosts.push_back(std::stoi(host));
  return hosts;
}

}  // namespace

StatusOr<std::unique_ptr<MpiSession>> MpiSession::Start() {
  int is_initialized = 0;
  ZG_RETURN_IF_MPI_ERROR(MPI_Initialized(&is_initialized));
  int thread_level = 0;
  if (is_initialized != 0) {
    ZG_RETURN_IF_MPI_ERROR(MPI_Query_thread(&thread_level));
  } else {
    ZG_RETURN_IF_MPI_ERROR(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &thread_level));
  }
  std::unique_ptr<MpiSession> session(new MpiSession(is_initialized == 0));
  if (thread_level < MPI_THREAD_FUNNELED) {
    return FailedPrecondition(
        "MPI does not allow threads beside it; initialise it with at least "
        "MPI_THREAD_FUNNELED");
  }
  return session;
}

MpiSession::~MpiSession() {
  int is_finalized = 0;
  MPI_Finalized(&is_finalized);
  if (is_owner_ && is_finalized == 0) MPI_Finalize();
}

StatusOr<std::unique_ptr<Communicator>> MakeMpiCommunicator(const MpiOptions& options) {
  int is_initialized = 0;
  ZG_RETURN_IF_MPI_ERROR(MPI_Initialized(&is_initialized));
  if (is_initialized == 0) {
    return FailedPrecondition("MPI is not initialised; start an MpiSession first");
  }
  ZG_ASSIGN_OR_RETURN(MpiComm world, MpiComm::Duplicate(MPI_COMM_WORLD));
  const StatusOr<Settings> settings = ReadSettings(options);
  // Until the ranks know that all have valid settings, they use the default timeout.
  ZG_RETURN_IF_ERROR(GatherStatus(world.get(), settings.status(), "reading the environment",
                                  kDefaultCollectiveTimeoutSeconds));
  ZG_RETURN_IF_ERROR(CheckSameTransport(world.get(), *settings));

  const double timeout_s = settings->timeout_s;
  std::vector<int> hosts = options.hosts;
  if (hosts.empty()) {
    ZG_ASSIGN_OR_RETURN(hosts, HostsOfRanks(world, timeout_s));
  }
  const auto num_local_ranks = std::count(hosts.begin(), hosts.end(), hosts[world.rank()]);
  const bool is_one_host = num_local_ranks == world.size();
  CommTransport transport = settings->transport;
  if (transport == CommTransport::kAuto) {
    transport = is_one_host ? CommTransport::kShared : CommTransport::kMessages;
  }
  if (transport == CommTransport::kShared && !is_one_host) {
    return FailedPrecondition(
        "ZG_COMM=shared needs all {} ranks on one host, but rank {} is on a host with {} of them; "
        "set "
        "ZG_COMM=auto",
        world.size(), world.rank(), num_local_ranks);
  }
  if (transport == CommTransport::kShared) {
    return MakeMpiSharedCommunicator(std::move(world), timeout_s);
  }
  return MakeMpiMessageCommunicator(std::move(world), std::move(hosts), timeout_s);
}

}  // namespace zg
