// The operations that framework/kernels/cuda writes in PTX: asynchronous copies to shared memory,
// the instructions of tensor cores, of warps and of warpgroups, powers of 2, and the shared memory of a launch.
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

// Products of a warpgroup (warpgroup_core.cuh); `left` is null where `a` has the left operand.
void StartProduct(Widened widen, const void* left, const uint32_t (&a)[4], const void* right,
                  bool adds, float (&c)[8][4]);
void BeginProducts();
void CommitProducts();
void WaitForProducts(int num_pending);
void ShowToProducts();

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
inline void BeginProducts() { emulation::BeginProducts(); }
inline void CommitProducts() { emulation::CommitProducts(); }
template <int kPending>
void WaitForProducts() {
  emulation::WaitForProducts(kPending);
}
inline void ShowToProducts() { emulation::ShowToProducts(); }
inline void Pin(float (&)[8][4]) {}
// Here it is the address alone.
inline uint64_t TileDescriptor(const void* shared) {
  return reinterpret_cast<uintptr_t>(shared) / 16;
}
inline const void* TileAt(uint64_t descriptor) {
  return reinterpret_cast<const void*>(descriptor * 16);
}
template <typename T>
void MultiplyTiles(T, uint64_t left, uint64_t right, bool adds, float (&c)[8][4]) {
  emulation::StartProduct([](uint16_t bits) { return ToF32(T{bits}); }, TileAt(left), {},
                          TileAt(right), adds, c);
}
template <typename T>
void MultiplyAddRows(T, const uint32_t (&a)[4], uint64_t right, float (&c)[8][4]) {
  emulation::StartProduct([](uint16_t bits) { return ToF32(T{bits}); }, nullptr, a, TileAt(right),
                          true, c);
}

// Like the device's instruction: denormal results are 0.
inline float Exp2(float x) {
  const float power = exp2f(x);
  return power < 0x1p-126f ? 0.0f : power;
}

}  // namespace zg::cuda
