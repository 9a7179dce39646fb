// How long a kernel takes on a device: the median of several rounds of many calls, which are
// recorded and replayed where the device can, so that launching them costs nothing.
#pragma once

#include <cstdint>
#include <functional>

#include "framework/base/status.h"
#include "framework/device/device.h"
#include "framework/kernels/kernel.h"
#include "tools/bench/gpu/kernel_cases.h"

namespace zg::bench {

// Where kernels run, and what memory they go through there.
struct Place {
  Device* device = nullptr;
  const KernelRegistry* kernels = nullptr;
  int64_t cold_bytes = 0;
};

// Of one run of what `work` queues.
StatusOr<double> MedianSeconds(Device& device, const std::function<Status()>& work);

// Of one call of the kernel. Errors: the device has no such kernel, or not enough memory; the
// kernel failed.
StatusOr<double> MedianKernelSeconds(const Place& place, const KernelCase& test);

}  // namespace zg::bench
