// The shared memory that a launch asks for.
#pragma once

namespace zg::cuda {

__device__ inline char* DynamicSharedMemory() {
  extern __shared__ __align__(128) char zg_dynamic_shared_memory[];
  return zg_dynamic_shared_memory;
}

}  // namespace zg::cuda
