// The GPUs of this host as devices. In a build without CUDA toolkit the same functions are errors
// that say so (no_cuda_device.cc).
#pragma once

#include <memory>

#include "framework/base/status.h"
#include "framework/device/device.h"

namespace zg {

// The number of GPUs, at least 1. Errors: no toolkit when this was built; no driver, or one that is
// too old; no GPU.
StatusOr<int> NumCudaDevices();

// GPU `index` with a queue of its own. Errors: as above; no such GPU; one that is too old.
StatusOr<std::unique_ptr<Device>> OpenCudaDevice(int index);

}  // namespace zg
