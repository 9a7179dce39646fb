#include "framework/device/cuda_device.h"

namespace zg {

StatusOr<int> NumCudaDevices() {
  return FailedPrecondition(
      "`device=cuda`: this program was built without CUDA: there was no toolkit in CUDA_PATH or "
      "/usr/local/cuda (or ZG_CUDA=off); build it where there is one, or use `device=cpu`");
}

StatusOr<std::unique_ptr<Device>> OpenCudaDevice(int /*index*/) {
  return NumCudaDevices().status();
}

}  // namespace zg
