// ZG_HOST_DEVICE: before functions that kernels run on the CPU and on a GPU alike, so that both
// compute the same. Empty for a compiler that knows no GPU.
#pragma once

#if defined(__CUDACC__)
#define ZG_HOST_DEVICE __host__ __device__
#else
#define ZG_HOST_DEVICE
#endif

// Functions that become part of their caller, and are compiled for its instruction set.
#define ZG_INLINE inline __attribute__((always_inline))
