// 2^x by the device's instruction, with an error of two units in the last place, for sums and
// products that are not compared bit by bit with the CPU's. Denormal results are 0.
#pragma once

#ifdef ZG_EMULATED_CUDA  // on the host, by tests/cuda_emulation
#include <emulated_instructions.h>
#else

namespace zg::cuda {

__device__ inline float Exp2(float x) {
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x));
  return power;
}

}  // namespace zg::cuda

#endif  // ZG_EMULATED_CUDA

namespace zg::cuda {

inline constexpr float kLog2E = 1.44269504088896341f;
inline constexpr float kLn2 = 0.693147180559945309f;

}  // namespace zg::cuda
