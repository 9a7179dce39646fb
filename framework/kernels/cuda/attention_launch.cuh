// How the kernels of attention are launched.
#pragma once

#include <algorithm>

#include "framework/kernels/cuda/attention_tensor_core_grad.cuh"

namespace zg::cuda {

// How the blocks of a kernel share the work: one block for each tile of positions of each head.
struct TileLaunch {
  int positions;
  dim3 block;
  int64_t shared_bytes;
};

// One block for each tile of positions of each of these.
struct HeadsToRun {
  int64_t heads;
  int64_t positions;
};
inline HeadsToRun Queries(const AttentionShape& shape) { return {shape.heads, shape.queries}; }
inline HeadsToRun Keys(const AttentionShape& shape) { return {shape.key_heads, shape.keys}; }

// Data that the tiles of a head read again should still be in the second-level cache, which has no
// room for all heads. So heads come in groups (z) of about as many as fit: all tiles (y) of a
// group's heads (x) before those of the next group. HeadOfBlock() finds the head.
inline constexpr int64_t kHeadsOfGroup = 128;
inline constexpr int64_t kMaxGroups = 65535;

inline dim3 BlocksOfHeads(int64_t num_heads, int64_t num_tiles) {
  const int64_t groups = std::clamp<int64_t>(CeilDivide(num_heads, kHeadsOfGroup), 1, kMaxGroups);
  return dim3(static_cast<unsigned>(CeilDivide(num_heads, groups)),
              static_cast<unsigned>(num_tiles), static_cast<unsigned>(groups));
}

// A kernel must request shared memory beyond the default limit.
template <typename Arrays>
Status Run(void (*kernel)(Arrays, AttentionShape), const TileLaunch& tiles, const HeadsToRun& heads,
           void* stream, const Arrays& arrays, const AttentionShape& shape) {
  LaunchShape launch;
  launch.grid =
      BlocksOfHeads(shape.batch * heads.heads, CeilDivide(heads.positions, tiles.positions));
  launch.block = tiles.block;
  launch.shared_bytes = tiles.shared_bytes;
  ZG_RETURN_IF_ERROR(
      CudaStatus(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                      static_cast<int>(tiles.shared_bytes)),
                 "attention needs more shared memory than the device has"));
  return Launch(kernel, launch, stream, arrays, shape);
}

// Tensor cores, by tiles such as WarpTiles: `num_rows` rows of channels in shared memory.
template <typename Tiles>
TileLaunch LaunchTensorCores(int num_rows) {
  return {kRowsOfBlock, dim3(kAttentionThreads),
          num_rows * Tiles::kStride * static_cast<int64_t>(sizeof(typename Tiles::Type))};
}

template <typename Tiles, typename T>
Status RunForwardOnTensorCores(const AttentionArrays<T>& arrays, const AttentionShape& shape,
                               void* stream) {
  constexpr int kRows = kRowsOfBlock + 2 * kForwardStages * 64;
  return Run(AttentionTensorCoreKernel<Tiles, T>, LaunchTensorCores<Tiles>(kRows), Queries(shape),
             stream, arrays, shape);
}

template <typename Tiles, typename T>
Status RunBackwardOnTensorCores(const AttentionGradArrays<T>& arrays, const AttentionShape& shape,
                                void* stream) {
  constexpr int kStages = kGradStages<Tiles::kSize>;
  constexpr int kKeyGradRows = 2 * kRowsOfBlock + 2 * kStages * kQueriesOfKeyGrad<Tiles::kSize>;
  constexpr int kQueryGradRows = 2 * kRowsOfBlock + 2 * kStages * 64;
  ZG_RETURN_IF_ERROR(Run(AttentionKeyGradTensorCoreKernel<Tiles, T>,
                         LaunchTensorCores<Tiles>(kKeyGradRows), Keys(shape), stream, arrays,
                         shape));
  return Run(AttentionQueryGradTensorCoreKernel<Tiles, T>, LaunchTensorCores<Tiles>(kQueryGradRows),
             Queries(shape), stream, arrays, shape);
}

}  // namespace zg::cuda
