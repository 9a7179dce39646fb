// How a kernel reports on the device that its data is bad.
#pragma once

#include <cuda_runtime.h>

#include "framework/kernels/kernel.h"

namespace zg::cuda {

struct FaultSink {
  DeviceFault* fault;
  int32_t node;

  // The first fault is kept.
  __device__ void Record(int64_t got, int64_t limit) const {
    if (atomicCAS(&fault->happened, 0, 1) != 0) return;
    fault->node = node;
    fault->got = got;
    fault->limit = limit;
  }
};

inline FaultSink FaultSinkOf(const KernelArguments& arguments) {
  return {arguments.fault, arguments.node};
}

}  // namespace zg::cuda
