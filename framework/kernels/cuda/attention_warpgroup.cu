#include "framework/kernels/cuda/attention_launch.cuh"
#include "framework/kernels/cuda/attention_tensor_core_grad.cuh"
#include "framework/kernels/cuda/attention_warpgroup.h"
#include "framework/kernels/cuda/warpgroup_core.cuh"

namespace zg::cuda {
namespace {

// WarpTiles (attention_tensor_core.cuh) whose products are those of a warpgroup.
template <typename T>
struct WarpgroupTiles {
  using Type = T;
  static constexpr int kSize = kSwizzledRow;
  static constexpr int kStride = kSwizzledRow;
  static_assert(kAttentionThreads == kWarpgroupThreads);

  __device__ static int Place(int row, int pack) { return SwizzledPlace(row, pack); }

  __device__ static void MultiplyByRows(const T* left, const T* right, float (&products)[8][4]) {
    const uint64_t first_left = TileDescriptor(left);
    const uint64_t first_right = TileDescriptor(right);
    Pin(products);
    BeginProducts();
#pragma unroll
    for (int k = 0; k < kSize / 16; ++k) {
      MultiplyTiles(T(), first_left + k * kDescriptorOf16Columns,
                    first_right + k * kDescriptorOf16Columns, k > 0, products);
    }
    CommitProducts();
  }

  __device__ static void AddWeightedRows(const float (&weights)[8][4], const T* values,
                                         float (&sums)[8][4]) {
    uint32_t a[4][4];
#pragma unroll
    for (int k = 0; k < 4; ++k) PackWeights<T>(weights[2 * k], weights[2 * k + 1], a[k]);
    const uint64_t first = TileDescriptor(values);
    Pin(sums);
    BeginProducts();
#pragma unroll
    for (int k = 0; k < 4; ++k) MultiplyAddRows(T(), a[k], first + k * kDescriptorOf16Rows, sums);
    CommitProducts();
  }

  template <int kPending>
  __device__ static void Wait(float (&products)[8][4]) {
    WaitForProducts<kPending>();
    Pin(products);
  }

  __device__ static void ShowCopies() { ShowToProducts(); }
};

}  // namespace

bool HasWarpgroupProducts() {
  int device = 0;
  int major = 0;
  int minor = 0;
  return cudaGetDevice(&device) == cudaSuccess &&
         cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) == cudaSuccess &&
         cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device) == cudaSuccess &&
         major == 9 && minor == 0;
}

template <typename T>
Status RunAttentionOfWarpgroups(const AttentionArrays<T>& arrays, const AttentionShape& shape,
                                void* stream) {
  return RunForwardOnTensorCores<WarpgroupTiles<T>>(arrays, shape, stream);
}

template <typename T>
Status RunAttentionGradOfWarpgroups(const AttentionGradArrays<T>& arrays,
                                    const AttentionShape& shape, void* stream) {
  return RunBackwardOnTensorCores<WarpgroupTiles<T>>(arrays, shape, stream);
}

template Status RunAttentionOfWarpgroups(const AttentionArrays<BFloat16>&, const AttentionShape&,
                                         void*);
template Status RunAttentionOfWarpgroups(const AttentionArrays<Float16>&, const AttentionShape&,
                                         void*);
template Status RunAttentionGradOfWarpgroups(const AttentionGradArrays<BFloat16>&,
                                             const AttentionShape&, void*);
template Status RunAttentionGradOfWarpgroups(const AttentionGradArrays<Float16>&,
                                             const AttentionShape&, void*);

}  // namespace zg::cuda
