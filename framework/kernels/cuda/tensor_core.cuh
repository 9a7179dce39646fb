// The instructions of tensor cores for 16-bit operands and f32 sums, sm_80 on. All lanes of a warp
// call these together. With g = lane / 4 and t = lane % 4, a lane holds
//   of a (16, 16): rows g and g + 8 at columns 2 t, 2 t + 1, then both at columns + 8;
//   of b (16, 8):  rows 2 t, 2 t + 1 of column g, then rows + 8;
//   of c (16, 8):  columns 2 t, 2 t + 1 of row g, then of row g + 8.
// Source: PTX ISA, "Matrix fragments for mma.m16n8k16" and "ldmatrix".
#pragma once

#include <cstdint>

#include "framework/kernels/cuda/rounding.cuh"
#include "framework/tensor/half.h"

#ifdef ZG_EMULATED_CUDA  // on the host, by tests/cuda_emulation
#include <emulated_instructions.h>
#else

namespace zg::cuda {

// c += a b.
__device__ inline void MultiplyAdd(BFloat16, const uint32_t (&a)[4], const uint32_t (&b)[2],
                                   float (&c)[4]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
__device__ inline void MultiplyAdd(Float16, const uint32_t (&a)[4], const uint32_t (&b)[2],
                                   float (&c)[4]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// Four 8 x 8 matrices from shared memory; lane i gives the address, a multiple of 16 bytes, of row
// i % 8 of matrix i / 8. A lane gets elements 2 t, 2 t + 1 of row g of each.
__device__ inline void LoadMatrices(const void* row, uint32_t (&matrices)[4]) {
  const uint32_t address = static_cast<uint32_t>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(matrices[0]), "=r"(matrices[1]), "=r"(matrices[2]), "=r"(matrices[3])
               : "r"(address)
               : "memory");
}
// Likewise, but elements g of rows 2 t, 2 t + 1.
__device__ inline void LoadMatricesTransposed(const void* row, uint32_t (&matrices)[4]) {
  const uint32_t address = static_cast<uint32_t>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(matrices[0]), "=r"(matrices[1]), "=r"(matrices[2]), "=r"(matrices[3])
               : "r"(address)
               : "memory");
}

}  // namespace zg::cuda

#endif  // ZG_EMULATED_CUDA
