// The dynamic shared memory of a launch, at a multiple of 1024 bytes.
#pragma once

#ifdef ZG_EMULATED_CUDA  // on the host, by tests/cuda_emulation
#include <emulated_instructions.h>
#else

namespace zg::cuda {

__device__ inline char* DynamicSharedMemory() {
  extern __shared__ __align__(1024) char zg_dynamic_shared_memory[];
  return zg_dynamic_shared_memory;
}

}  // namespace zg::cuda

#endif  // ZG_EMULATED_CUDA
