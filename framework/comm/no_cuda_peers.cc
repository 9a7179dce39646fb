#include "framework/comm/cuda_peers.h"

namespace zg {

StatusOr<CudaPeers> ConnectCudaPeers(Device* /*device*/, ControlPlane* /*control*/,
                                     const CudaPeerOptions& /*options*/) {
  return FailedPrecondition(
      "`gpu_collectives=peer`: this program was built without CUDA: there was no toolkit; build it "
      "where there is one, or use `device=cpu`");
}

}  // namespace zg
