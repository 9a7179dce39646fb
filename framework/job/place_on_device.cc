#include "framework/job/place_on_device.h"

#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

#include "framework/comm/host_staged.h"
#include "framework/comm/nccl.h"
#include "framework/device/cuda_device.h"
#include "framework/device/cuda_support.h"

namespace zg {
namespace {

// How many ranks before this one are on its host.
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

}  // namespace

StatusOr<RankOnDevice> PlaceOnDevice(const JobOptions& options, Communicator* host) {
  RankOnDevice rank;
  if (options.device != "cuda") return rank;
  ZG_ASSIGN_OR_RETURN(const int local_rank, LocalRank(*host));
  StatusOr<std::unique_ptr<Device>> device = OpenGpuOf(local_rank);
  ZG_RETURN_IF_ERROR(ExchangeStatus(*host, "open the GPU", device.status()));
  rank.device = std::move(*device);
  if (options.gpu_collectives == "host") {
    ZG_ASSIGN_OR_RETURN(rank.communicator, MakeHostStagedCommunicator(rank.device.get(), host));
    return rank;
  }
  NcclOptions nccl_options;
  nccl_options.timeout_s = options.timeout_s;
  nccl_options.own_sums = options.fast_reduce;
  ZG_ASSIGN_OR_RETURN(rank.communicator,
                      MakeNcclCommunicator(rank.device.get(), host, nccl_options));
  return rank;
}

}  // namespace zg
