#include "framework/job/place_on_device.h"

#include <unistd.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "framework/comm/cuda_peers.h"
#include "framework/comm/host_staged.h"
#include "framework/comm/nccl.h"
#include "framework/device/cuda_device.h"
#include "framework/device/cuda_support.h"

namespace zg {
namespace {

// The number of lower ranks on the same host.
StatusOr<int> LocalRank(Communicator& host) {
  char name[256] = {};
  gethostname(name, sizeof(name) - 1);
  ZG_ASSIGN_OR_RETURN(const std::vector<std::string> names, host.Exchange("hosts", name));
  return static_cast<int>(std::count(names.begin(), names.begin() + host.rank(), name));
}

StatusOr<std::unique_ptr<Device>> OpenGpuOf(int local_rank) {
  ZG_ASSIGN_OR_RETURN(const int num_devices, NumCudaDevices());
  return OpenCudaDevice(GpuOfRank(local_rank, num_devices));
}

Status ConnectOverNccl(const JobOptions& options, Communicator* host, RankOnDevice* rank) {
  NcclOptions nccl_options;
  nccl_options.timeout_s = options.timeout_s;
  nccl_options.own_sums = options.fast_reduce;
  ZG_ASSIGN_OR_RETURN(rank->communicator,
                      MakeNcclCommunicator(rank->device.get(), host, nccl_options));
  return Status::Ok();
}

Status ConnectGpus(const JobOptions& options, Communicator* host, RankOnDevice* rank) {
  const std::string& asked = options.gpu_collectives;
  rank->transport_reason = "--gpu-collectives " + asked;
  if (asked == "host") {
    ZG_ASSIGN_OR_RETURN(rank->communicator, MakeHostStagedCommunicator(rank->device.get(), host));
    return Status::Ok();
  }
  if (asked == "nccl") return ConnectOverNccl(options, host, rank);
  if (options.fast_reduce) {
    rank->transport_reason = "--fast-reduce";
    return ConnectOverNccl(options, host, rank);
  }
  CudaPeerOptions peer_options;
  peer_options.timeout_s = options.timeout_s;
  ZG_ASSIGN_OR_RETURN(CudaPeers peers, ConnectCudaPeers(rank->device.get(), host, peer_options));
  if (peers.communicator != nullptr) {
    rank->communicator = std::move(peers.communicator);
    if (asked == "auto") rank->transport_reason = "every rank can map the memory of every GPU";
    return Status::Ok();
  }
  if (asked == "peer") {
    return FailedPrecondition(
        "`gpu_collectives=peer`: {}; use `gpu_collectives=nccl`, or `gpu_collectives=host`",
        peers.problem);
  }
  rank->transport_reason = "no peer memory: " + peers.problem;
  const Status status = ConnectOverNccl(options, host, rank);
  return status.ok() ? status : status.WithContext(rank->transport_reason);
}

}  // namespace

StatusOr<RankOnDevice> PlaceOnDevice(const JobOptions& options, Communicator* host) {
  RankOnDevice rank;
  if (options.device != "cuda") return rank;
  ZG_ASSIGN_OR_RETURN(const int local_rank, LocalRank(*host));
  StatusOr<std::unique_ptr<Device>> device = OpenGpuOf(local_rank);
  ZG_RETURN_IF_ERROR(ExchangeStatus(*host, "open the GPU", device.status()));
  rank.device = std::move(*device);
  ZG_RETURN_IF_ERROR(ConnectGpus(options, host, &rank));
  return rank;
}

}  // namespace zg
