// Products on the tensor cores of compute capability 9.0 (wgmma): the four warps of a block multiply
// tiles that lie in shared memory, without loading them into registers first. Only for sources that
// are compiled for sm_90a. All 128 threads of a block call these together.
//
// A tile has rows of 64 elements of 16 bits, 128 bytes, and begins at a multiple of 1024 bytes. The
// 16-byte packs of a row are swizzled: pack p of row r lies at place p ^ (r % 8), so that the same
// pack of eight rows comes from different banks.
//
// c is (64, 64): warp w has rows [16 w, 16 w + 16), and its lanes hold c[n] as they hold c of
// tensor_core.cuh for columns [8 n, 8 n + 8).
//
// Products are asynchronous. What they use and c must not be touched before they have been waited for.
// Source: PTX ISA, "Asynchronous Warpgroup Level Matrix Instructions".
#pragma once

#include <cstdint>

#include "framework/tensor/half.h"

namespace zg::cuda {

inline constexpr int kWarpgroupThreads = 128;
inline constexpr int kSwizzledRow = 64;  // elements

// What descriptors grow by.
inline constexpr int kDescriptorOf16Columns = 16 * 2 / 16;
inline constexpr int kDescriptorOf16Rows = 16 * kSwizzledRow * 2 / 16;

// The place of the first element of a pack.
__device__ inline int SwizzledPlace(int row, int pack) {
  return row * kSwizzledRow + (pack ^ (row % 8)) * 8;
}

}  // namespace zg::cuda

#ifdef ZG_EMULATED_CUDA  // on the host, by tests/cuda_emulation
#include <emulated_instructions.h>
#else

namespace zg::cuda {

// What the instructions take instead of a pointer into a tile. Eight rows are 1024 bytes, which the
// descriptor has in units of 16; likewise the address.
__device__ inline uint64_t TileDescriptor(const void* shared) {
  constexpr uint64_t kEightRows = 1024 / 16;
  constexpr uint64_t kSwizzled128Bytes = 1;
  const uint64_t address = __cvta_generic_to_shared(shared);
  return (address & 0x3FFFF) >> 4 | kEightRows << 16 | kEightRows << 32 | kSwizzled128Bytes << 62;
}

// The compiler must not move accesses to c past this.
__device__ inline void Pin(float (&c)[8][4]) {
#pragma unroll
  for (int n = 0; n < 8; ++n) {
#pragma unroll
    for (int r = 0; r < 4; ++r) asm volatile("" : "+f"(c[n][r]) : : "memory");
  }
}

// Before the first product after other accesses to the registers of its operands.
__device__ inline void BeginProducts() { asm volatile("wgmma.fence.sync.aligned;" : : : "memory"); }

// The products since the last commit are a group.
__device__ inline void CommitProducts() {
  asm volatile("wgmma.commit_group.sync.aligned;" : : : "memory");
}

// Waits for all groups except the last `kPending`.
template <int kPending>
__device__ inline void WaitForProducts() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" : : "n"(kPending) : "memory");
}

// Products see what the calling thread has written to shared memory before this, once the block has
// synchronised. Asynchronous copies must have been waited for.
__device__ inline void ShowToProducts() {
  asm volatile("fence.proxy.async.shared::cta;" : : : "memory");
}

#define ZG_COLUMNS(n) "+f"(c[n][0]), "+f"(c[n][1]), "+f"(c[n][2]), "+f"(c[n][3])
#define ZG_C                                                                                \
  ZG_COLUMNS(0), ZG_COLUMNS(1), ZG_COLUMNS(2), ZG_COLUMNS(3), ZG_COLUMNS(4), ZG_COLUMNS(5), \
      ZG_COLUMNS(6), ZG_COLUMNS(7)
#define ZG_C_TEXT                                                                               \
  "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, " \
  "%20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "

// c = left right^T, or c += left right^T, over 16 columns of two tiles of 64 rows. The descriptors are
// those of the first of these columns, kDescriptorOf16Columns more for the next.
#define ZG_MULTIPLY_TILES(T, TYPE)                                                  \
  __device__ inline void MultiplyTiles(T, uint64_t left, uint64_t right, bool adds, \
                                       float(&c)[8][4]) {                           \
    asm volatile(                                                                   \
        "{\n.reg .pred adds;\nsetp.ne.b32 adds, %34, 0;\n"                          \
        "wgmma.mma_async.sync.aligned.m64n64k16.f32." TYPE "." TYPE " " ZG_C_TEXT   \
        "%32, %33, adds, 1, 1, 0, 0;\n}\n"                                          \
        : ZG_C                                                                      \
        : "l"(left), "l"(right), "r"(static_cast<int>(adds)));                      \
  }
ZG_MULTIPLY_TILES(BFloat16, "bf16")
ZG_MULTIPLY_TILES(Float16, "f16")
#undef ZG_MULTIPLY_TILES

// c += a times 16 rows of a tile. The descriptor is that of the first of these rows, kDescriptorOf16Rows
// more for the next. A warp's lanes hold its 16 rows of a (64, 16) as they hold a of tensor_core.cuh.
#define ZG_MULTIPLY_ADD_ROWS(T, TYPE)                                              \
  __device__ inline void MultiplyAddRows(T, const uint32_t(&a)[4], uint64_t right, \
                                         float(&c)[8][4]) {                        \
    asm volatile(                                                                  \
        "{\n.reg .pred adds;\nsetp.eq.b32 adds, 0, 0;\n"                           \
        "wgmma.mma_async.sync.aligned.m64n64k16.f32." TYPE "." TYPE " " ZG_C_TEXT  \
        "{%32, %33, %34, %35}, %36, adds, 1, 1, 1;\n}\n"                           \
        : ZG_C                                                                     \
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(right));                 \
  }
ZG_MULTIPLY_ADD_ROWS(BFloat16, "bf16")
ZG_MULTIPLY_ADD_ROWS(Float16, "f16")
#undef ZG_MULTIPLY_ADD_ROWS

#undef ZG_C_TEXT
#undef ZG_C
#undef ZG_COLUMNS

}  // namespace zg::cuda

#endif  // ZG_EMULATED_CUDA
