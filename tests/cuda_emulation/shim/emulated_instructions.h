// The operations that framework/kernels/cuda writes in PTX: asynchronous copies to shared memory,
// the instructions of tensor cores, powers of 2, and the shared memory of a launch.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "framework/tensor/half.h"

namespace zg::emulation {

void CopyAsync(const void* source, bool is_inside, void* target);
void CommitCopies();
void WaitForCopies(int num_pending);

char* DynamicSharedMemory();

// With operands as f32: a (16, 16) and b (16, 8).
using Widened = float (*)(uint16_t bits);
void MultiplyAdd(Widened widen, const uint32_t (&a)[4], const uint32_t (&b)[2], float (&c)[4]);
void LoadMatrices(const void* row, bool is_transposed, uint32_t (&matrices)[4]);

}  // namespace zg::emulation

namespace zg::cuda {

inline char* DynamicSharedMemory() { return emulation::DynamicSharedMemory(); }

inline void CopyAsync(const void* source, bool is_inside, void* shared) {
  emulation::CopyAsync(source, is_inside, shared);
}
inline void CommitCopies() { emulation::CommitCopies(); }
template <int kPending>
void WaitForCopies() {
  emulation::WaitForCopies(kPending);
}

template <typename T>
void MultiplyAdd(T, const uint32_t (&a)[4], const uint32_t (&b)[2], float (&c)[4]) {
  emulation::MultiplyAdd([](uint16_t bits) { return ToF32(T{bits}); }, a, b, c);
}
inline void LoadMatrices(const void* row, uint32_t (&matrices)[4]) {
  emulation::LoadMatrices(row, false, matrices);
}
inline void LoadMatricesTransposed(const void* row, uint32_t (&matrices)[4]) {
  emulation::LoadMatrices(row, true, matrices);
}
// Like the device's instruction: denormal results are 0.
inline float Exp2(float x) {
  const float power = exp2f(x);
  return power < 0x1p-126f ? 0.0f : power;
}

}  // namespace zg::cuda
