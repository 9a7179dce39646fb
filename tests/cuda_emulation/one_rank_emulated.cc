#include "framework/comm/cuda_peers.h"
#include "framework/comm/in_process.h"
#include "framework/device/cuda_device.h"
#include "tests/cuda_emulation/streams.h"
#include "tests/eager/one_rank.h"

namespace zg::testing {

Status OnOneRank(const std::function<Status(Communicator&)>& run) {
  const Status status = RunRanks(1, [&](Communicator& host) -> Status {
    ZG_ASSIGN_OR_RETURN(const std::unique_ptr<Device> gpu, OpenCudaDevice(0));
    ZG_ASSIGN_OR_RETURN(const CudaPeers peers, ConnectCudaPeers(gpu.get(), &host, {}));
    if (!peers.problem.empty()) return FailedPrecondition("{}", peers.problem);
    return run(*peers.communicator);
  });
  emulation::EndProcesses();
  return status;
}

int GpuOfOneRank() { return 0; }

const std::vector<int>& ThreadCounts() {
  static const auto& counts = *new std::vector<int>{1};
  return counts;
}

bool NormsSumBiasesDifferently() { return true; }

}  // namespace zg::testing
