#include "framework/comm/nccl.h"

namespace zg {

StatusOr<std::unique_ptr<Communicator>> MakeNcclCommunicator(Device* /*device*/,
                                                             ControlPlane* /*control*/,
                                                             const NcclOptions& /*options*/) {
  return FailedPrecondition(
      "`gpu_collectives=nccl`: this program was built without NCCL: there was no libnccl in the "
      "CUDA toolkit; build it where there is one, or use `gpu_collectives=host`");
}

}  // namespace zg
