// Asynchronous copies from device memory to shared memory, sm_80 on. Other threads see them after
// the copying thread has waited for them and the block has synchronised.
#pragma once

#include <cstdint>

#ifdef ZG_EMULATED_CUDA  // on the host, by tests/cuda_emulation
#include <emulated_instructions.h>
#else

namespace zg::cuda {

// Copies 16 bytes, both addresses at multiples of 16; writes zeros if `is_inside` is false, and
// then reads nothing.
__device__ inline void CopyAsync(const void* source, bool is_inside, void* shared) {
  const uint32_t target = static_cast<uint32_t>(__cvta_generic_to_shared(shared));
  const int source_bytes = is_inside ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
               :
               : "r"(target), "l"(__cvta_generic_to_global(source)), "r"(source_bytes)
               : "memory");
}

// The copies since the last commit are a group.
__device__ inline void CommitCopies() { asm volatile("cp.async.commit_group;" : : : "memory"); }

// Waits for all of the thread's groups except the last `kPending`.
template <int kPending>
__device__ inline void WaitForCopies() {
  asm volatile("cp.async.wait_group %0;" : : "n"(kPending) : "memory");
}

}  // namespace zg::cuda

#endif  // ZG_EMULATED_CUDA
