// The time of a kernel on a device: the median of several rounds of many calls. The calls are
// recorded and replayed if the device supports that, so that launches cost nothing.
#pragma once

#include <cstdint>
#include <functional>

#include "framework/base/status.h"
#include "framework/device/device.h"
#include "framework/kernels/kernel.h"
#include "tools/bench/gpu/kernel_cases.h"

namespace zg::bench {

// The device that kernels run on, and the memory that their operands cycle through.
struct Place {
  Device* device = nullptr;
  const KernelRegistry* kernels = nullptr;
  int64_t cold_bytes = 0;
};

// The time of one run of the work that `work` queues, which is recorded unless `records` is false: a
// GPU replays a large copy more slowly than it runs a queued one.
StatusOr<double> MedianSeconds(Device& device, const std::function<Status()>& work,
                               bool records = true);

// The time of one call of the kernel. Errors: the device has no such kernel, or not enough memory;
// the kernel failed.
StatusOr<double> MedianKernelSeconds(const Place& place, const KernelCase& test);

}  // namespace zg::bench
