// How a kernel reports on the device that its data is bad.
#pragma once

#include <cuda_runtime.h>

#include "framework/kernels/kernel.h"

namespace zg::cuda {

struct FaultSink {
  DeviceFault* fault;
  int32_t node;

  // The fault of the first node is kept: the kernels of a queue run one after the other. Among the
  // values that its threads got, in any order, the largest is kept, compared as unsigned numbers, so
  // that a negative number wins; so the message is the same every time. `limit` is the node's. `got`
  // starts as 0, the least.
  __device__ void Record(int64_t got, int64_t limit) const {
    const int32_t first = atomicCAS(&fault->happened, 0, node + 1);
    if (first == 0) {
      fault->node = node;
      fault->limit = limit;
    } else if (first != node + 1) {
      return;
    }
    atomicMax(reinterpret_cast<unsigned long long*>(&fault->got),
              static_cast<unsigned long long>(got));
  }
};

inline FaultSink FaultSinkOf(const KernelArguments& arguments) {
  return {arguments.fault, arguments.node};
}

}  // namespace zg::cuda
