// ZG_HOST_DEVICE: put before functions that kernels run both on the CPU and on a GPU, so that both
// compute the same. Empty for a compiler without GPU support.
#pragma once

#if defined(__CUDACC__)
#define ZG_HOST_DEVICE __host__ __device__
#else
#define ZG_HOST_DEVICE
#endif

// Put before functions that are inlined into their caller, and compiled for its instruction set.
#define ZG_INLINE inline __attribute__((always_inline))
