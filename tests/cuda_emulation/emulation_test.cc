// Tests that the emulated device detects what it is meant to detect: small kernels, each with one
// mistake.
#include <cuda_runtime.h>
#include <emulated_instructions.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "framework/kernels/cuda/rounding.cuh"
#include "framework/kernels/cuda/warpgroup_core.cuh"
#include "framework/tensor/half.h"

namespace zg::emulation {
namespace {

using ::testing::HasSubstr;

template <typename T>
class Array {
 public:
  explicit Array(size_t size) : size_(size) {
    cudaMalloc(&data_, size * sizeof(T));
    cudaMemset(data_, 0, size * sizeof(T));
  }
  ~Array() { cudaFree(data_); }
  T* data() const { return data_; }
  std::vector<T> Values() const {
    std::vector<T> values(size_);
    cudaMemcpy(values.data(), data_, size_ * sizeof(T), cudaMemcpyDeviceToHost);
    return values;
  }

 private:
  const size_t size_;
  T* data_ = nullptr;
};

constexpr size_t kSharedBytes = size_t{16} << 10;

// The error of the launch, or ""; the same in every order of threads.
template <typename... Parameters, typename... Arguments>
std::string ErrorOf(unsigned blocks, unsigned threads, void (*kernel)(Parameters...),
                    Arguments... arguments) {
  std::string first;
  for (int i = 0; i < 3; ++i) {
    cudaStream_t stream;
    cudaStreamCreate(&stream);
    const cudaLaunchConfig_t config = {dim3(blocks), dim3(threads), kSharedBytes, stream};
    const cudaError_t error = cudaLaunchKernelEx(&config, kernel, arguments...);
    const std::string text = error == cudaSuccess ? "" : cudaGetErrorString(error);
    if (i == 0) first = text;
    EXPECT_EQ(text.empty(), first.empty()) << text << first;
  }
  return first;
}

enum Fault { kNone, kFirst, kSecond, kThird };

__global__ void ReverseKernel(Fault fault, int* data) {
  __shared__ int values[64];
  const unsigned i = threadIdx.x;
  if (fault != kSecond || i != 5) values[i] = data[blockIdx.x * 64 + i];
  if (fault != kFirst) __syncthreads();
  data[blockIdx.x * 64 + i] = values[63 - i];
}

TEST(Emulation, SharedMemoryIsOrderedByBarriersOnly) {
  const Array<int> data(128);
  EXPECT_EQ(ErrorOf(2, 64, ReverseKernel, kNone, data.data()), "");
  EXPECT_THAT(ErrorOf(2, 64, ReverseKernel, kFirst, data.data()),
              ::testing::AnyOf(HasSubstr("race"), HasSubstr("no thread has written")));
  EXPECT_THAT(ErrorOf(2, 64, ReverseKernel, kSecond, data.data()),
              HasSubstr("a read of shared memory that no thread has written"));
}

__global__ void DivergeKernel(Fault fault) {
  if (fault == kFirst && threadIdx.x == 3) return;
  if (fault == kSecond && threadIdx.x < 32) {
    __syncthreads();
  } else {
    __syncthreads();
  }
}

TEST(Emulation, AllThreadsMeetAtOneBarrier) {
  EXPECT_EQ(ErrorOf(1, 64, DivergeKernel, kNone), "");
  EXPECT_THAT(ErrorOf(1, 64, DivergeKernel, kFirst), HasSubstr("63 threads wait at barriers"));
  EXPECT_THAT(ErrorOf(1, 64, DivergeKernel, kSecond), HasSubstr("64 threads wait at barriers"));
}

__global__ void SumKernel(Fault fault, int* data) {
  if (fault == kFirst && threadIdx.x == 3) return;
  int sum = static_cast<int>(threadIdx.x);
  for (int distance = 16; distance > 0; distance /= 2) {
    sum += __shfl_xor_sync(fault == kSecond ? 1u : 0xffffffffu, sum, distance);
  }
  data[threadIdx.x] = sum;
}

TEST(Emulation, AllLanesShuffle) {
  const Array<int> data(32);
  EXPECT_EQ(ErrorOf(1, 32, SumKernel, kNone, data.data()), "");
  EXPECT_EQ(data.Values(), std::vector<int>(32, 31 * 16));
  EXPECT_THAT(ErrorOf(1, 32, SumKernel, kFirst, data.data()),
              HasSubstr("31 in operations of their warp (shuffle)"));
  EXPECT_THAT(ErrorOf(1, 32, SumKernel, kSecond, data.data()), HasSubstr("not of all lanes"));
}

struct alignas(16) Pack {
  int values[4];
};

__global__ void CopyPackKernel(const int* from, int* to) {
  *reinterpret_cast<Pack*>(to) = *reinterpret_cast<const Pack*>(from);
}

TEST(Emulation, PacksAreAlignedAndInside) {
  const Array<int> from(7);
  const Array<int> to(8);
  EXPECT_EQ(ErrorOf(1, 1, CopyPackKernel, from.data(), to.data()), "");
  EXPECT_THAT(ErrorOf(1, 1, CopyPackKernel, from.data() + 1, to.data()), HasSubstr("misaligned"));
  EXPECT_THAT(ErrorOf(1, 1, CopyPackKernel, from.data() + 4, to.data()),
              HasSubstr("of an allocation of 28"));
  const int on_host[4] = {};
  EXPECT_THAT(ErrorOf(1, 1, CopyPackKernel, &on_host[0], to.data()),
              ::testing::AnyOf(HasSubstr("host's memory"), HasSubstr("misaligned")));
}

// Threads write neighbouring bytes and halves of words, after and before whole words.
__global__ void NeighboursKernel(Fault fault, unsigned char* bytes, unsigned short* halves) {
  __shared__ int words[16];
  const unsigned i = threadIdx.x;
  if (i < 16) words[i] = 0;
  __syncthreads();
  auto* const shared = reinterpret_cast<unsigned char*>(words);
  shared[i] = bytes[i];
  if (fault == kFirst) bytes[i] = shared[i ^ 1];
  __syncthreads();
  halves[i] = static_cast<unsigned short>(words[i / 4]);
  if (fault == kSecond && i == 9) halves[10] = 1;
  __syncthreads();
  if (i < 32) reinterpret_cast<int*>(halves)[i] = i;
  if (fault == kThird && i == 40) halves[7] = 1;
}

TEST(Emulation, BytesOfAWordAreApart) {
  const Array<unsigned char> bytes(64);
  const Array<unsigned short> halves(64);
  EXPECT_EQ(ErrorOf(1, 64, NeighboursKernel, kNone, bytes.data(), halves.data()), "");
  EXPECT_THAT(ErrorOf(1, 64, NeighboursKernel, kFirst, bytes.data(), halves.data()),
              HasSubstr("race"));
  EXPECT_THAT(ErrorOf(1, 64, NeighboursKernel, kSecond, bytes.data(), halves.data()),
              HasSubstr("a race: a write of global memory"));
  EXPECT_THAT(ErrorOf(1, 64, NeighboursKernel, kThird, bytes.data(), halves.data()),
              HasSubstr("a race: a write of global memory"));
}

__global__ void WriteKernel(Fault fault, int* data) {
  if (fault == kFirst) data[0] = static_cast<int>(blockIdx.x);
  if (fault == kSecond) atomicAdd(data + 7, 1);
  if (fault == kThird) data[1 + threadIdx.x % 2] = 0;
}

TEST(Emulation, NothingOrdersBlocks) {
  const Array<int> data(8);
  EXPECT_THAT(ErrorOf(2, 1, WriteKernel, kFirst, data.data()),
              HasSubstr("a race: a write of global memory"));
  EXPECT_EQ(ErrorOf(5, 1, WriteKernel, kSecond, data.data()), "");
  EXPECT_EQ(data.Values()[7], 15);
  EXPECT_EQ(ErrorOf(1, 2, WriteKernel, kThird, data.data()), "");
  EXPECT_THAT(ErrorOf(1, 3, WriteKernel, kThird, data.data()), HasSubstr("race"));
}

__global__ void AddWideKernel(Fault fault, unsigned long long* data) {
  if (fault == kFirst) atomicAdd(data + 1, 1ull << 40);
  if (fault == kSecond && threadIdx.x == 0) data[1] = 0;
  if (fault == kSecond && threadIdx.x == 1) atomicAdd(data + 1, 1ull);
  if (fault == kThird) atomicAdd(data + 8, 1ull);
}

TEST(Emulation, AtomicsAddWideNumbers) {
  const Array<unsigned long long> data(8);
  EXPECT_EQ(ErrorOf(3, 4, AddWideKernel, kFirst, data.data()), "");
  EXPECT_EQ(data.Values()[1], 36ull << 40);
  EXPECT_THAT(ErrorOf(1, 2, AddWideKernel, kSecond, data.data()), HasSubstr("race"));
  EXPECT_THAT(ErrorOf(1, 1, AddWideKernel, kThird, data.data()), HasSubstr("allocation"));
}

__global__ void CopyAsyncKernel(Fault fault, const int* from, int* to) {
  char* const tile = cuda::DynamicSharedMemory();
  cuda::CopyAsync(from + threadIdx.x * 4, true, tile + threadIdx.x * 16);
  if (fault != kFirst) cuda::CommitCopies();
  fault == kSecond ? cuda::WaitForCopies<1>() : cuda::WaitForCopies<0>();
  if (fault != kThird) __syncthreads();
  const unsigned other = blockDim.x - 1 - threadIdx.x;
  to[threadIdx.x] = reinterpret_cast<const int*>(tile)[other * 4];
}

TEST(Emulation, CopiesLandWhenTheyAreWaitedFor) {
  const Array<int> from(4 * 64);
  const Array<int> to(64);
  EXPECT_EQ(ErrorOf(1, 64, CopyAsyncKernel, kNone, from.data(), to.data()), "");
  for (const Fault fault : {kFirst, kSecond}) {
    EXPECT_THAT(ErrorOf(1, 64, CopyAsyncKernel, fault, from.data(), to.data()),
                HasSubstr("in flight"));
  }
  EXPECT_NE(ErrorOf(1, 64, CopyAsyncKernel, kThird, from.data(), to.data()), "");
}

// One product (16, 16) x (16, 8), with the operands' elements laid out as in tensor_core.cuh.
__global__ void ProductKernel(float* out) {
  const int lane = static_cast<int>(threadIdx.x);
  BFloat16* const a = reinterpret_cast<BFloat16*>(cuda::DynamicSharedMemory());
  BFloat16* const b = a + 16 * 16;
  for (int i = lane; i < 16 * 16; i += 32) {
    a[i] = FromF32<BFloat16>(static_cast<float>(i / 16 - i % 16));
  }
  for (int i = lane; i < 16 * 8; i += 32) {
    b[i] = FromF32<BFloat16>(static_cast<float>(i / 8 + 3 * (i % 8)));
  }
  __syncthreads();
  uint32_t left[4];
  uint32_t right[4];
  cuda::LoadMatrices(a + lane % 16 * 16 + lane / 16 * 8, left);
  cuda::LoadMatricesTransposed(b + lane % 16 * 8, right);
  const uint32_t first_two[2] = {right[0], right[1]};
  float c[4] = {1, 1, 1, 1};
  cuda::MultiplyAdd(BFloat16(), left, first_two, c);
  for (int r = 0; r < 4; ++r) out[(lane / 4 + r / 2 * 8) * 8 + lane % 4 * 2 + r % 2] = c[r];
}

TEST(Emulation, TensorCoresMultiply) {
  const Array<float> out(16 * 8);
  ASSERT_EQ(ErrorOf(1, 32, ProductKernel, out.data()), "");
  const std::vector<float> values = out.Values();
  for (int i = 0; i < 16; ++i) {
    for (int j = 0; j < 8; ++j) {
      float sum = 1;
      for (int k = 0; k < 16; ++k) sum += static_cast<float>((i - k) * (k + 3 * j));
      EXPECT_EQ(values[i * 8 + j], sum) << i << " " << j;
    }
  }
}

// (x y^T) y for tiles x, y of 64 rows and columns.
__global__ void WarpgroupKernel(Fault fault, bool waits, const BFloat16* from, float* out) {
  auto* const x = reinterpret_cast<BFloat16*>(cuda::DynamicSharedMemory());
  BFloat16* const y = x + 64 * cuda::kSwizzledRow;
  const int thread = static_cast<int>(threadIdx.x);
  for (int i = thread; i < 2 * 64 * 8; i += cuda::kWarpgroupThreads) {
    cuda::CopyAsync(from + i * 8, true, x + cuda::SwizzledPlace(i / 8, i % 8));
  }
  cuda::CommitCopies();
  cuda::WaitForCopies<0>();
  if (fault != kFirst) cuda::ShowToProducts();
  __syncthreads();
  float c[8][4];
  float sums[8][4] = {};
  if (fault != kSecond) cuda::BeginProducts();
  for (int k = 0; k < 4; ++k) {
    const int columns = k * cuda::kDescriptorOf16Columns;
    cuda::MultiplyTiles(BFloat16(), cuda::TileDescriptor(x) + columns,
                        cuda::TileDescriptor(y) + columns, k > 0, c);
  }
  cuda::CommitProducts();
  fault == kThird ? cuda::WaitForProducts<1>() : cuda::WaitForProducts<0>();
  cuda::BeginProducts();
  for (int k = 0; k < 4; ++k) {
    uint32_t a[4];
    for (int r = 0; r < 4; ++r) {
      const float(&pair)[4] = c[2 * k + r / 2];
      a[r] = cuda::PackPair(BFloat16(), pair[r % 2 * 2], pair[r % 2 * 2 + 1]);
    }
    cuda::MultiplyAddRows(BFloat16(), a, cuda::TileDescriptor(y) + k * cuda::kDescriptorOf16Rows,
                          sums);
  }
  cuda::CommitProducts();
  if (waits) cuda::WaitForProducts<0>();
  for (int n = 0; n < 8; ++n) {
    for (int r = 0; r < 4; ++r) {
      const int row = thread / 32 * 16 + thread % 32 / 4 + r / 2 * 8;
      out[row * 64 + n * 8 + thread % 4 * 2 + r % 2] = sums[n][r];
    }
  }
}

TEST(Emulation, WarpgroupsMultiplyTiles) {
  const auto value = [](int tile, int row, int column) {
    return (row * (tile + 1) + column * 3) % 5 - 2;
  };
  std::vector<BFloat16> tiles;
  for (int i = 0; i < 2 * 64 * 64; ++i) {
    const int element = value(i / 4096, i / 64 % 64, i % 64);
    tiles.push_back(FromF32<BFloat16>(static_cast<float>(element)));
  }
  const Array<BFloat16> from(tiles.size());
  cudaMemcpy(from.data(), tiles.data(), tiles.size() * sizeof(BFloat16), cudaMemcpyHostToDevice);
  const Array<float> out(64 * 64);
  ASSERT_EQ(ErrorOf(1, 128, WarpgroupKernel, kNone, true, from.data(), out.data()), "");
  const std::vector<float> got = out.Values();
  for (int i = 0; i < 64; ++i) {
    float expected[64] = {};
    for (int j = 0; j < 64; ++j) {
      int product = 0;
      for (int k = 0; k < 64; ++k) product += value(0, i, k) * value(1, j, k);
      for (int k = 0; k < 64; ++k) expected[k] += static_cast<float>(product * value(1, j, k));
    }
    for (int k = 0; k < 64; ++k) ASSERT_EQ(got[i * 64 + k], expected[k]) << i << " " << k;
  }
  EXPECT_THAT(ErrorOf(1, 128, WarpgroupKernel, kFirst, true, from.data(), out.data()),
              HasSubstr("without fence.proxy.async"));
  EXPECT_THAT(ErrorOf(1, 128, WarpgroupKernel, kSecond, true, from.data(), out.data()),
              HasSubstr("without wgmma.fence"));
  ASSERT_EQ(ErrorOf(1, 128, WarpgroupKernel, kThird, true, from.data(), out.data()), "");
  EXPECT_TRUE(std::isnan(out.Values()[0]));
  EXPECT_THAT(ErrorOf(1, 128, WarpgroupKernel, kNone, false, from.data(), out.data()),
              HasSubstr("ends with a product in flight"));
}

TEST(Emulation, LaunchesHaveLimits) {
  const cudaLaunchConfig_t wide = {dim3(1), dim3(1025), 0, nullptr};
  EXPECT_EQ(cudaLaunchKernelEx(&wide, DivergeKernel, kNone), cudaErrorInvalidConfiguration);
  const cudaLaunchConfig_t unasked = {dim3(1), dim3(1), 50000, nullptr};
  EXPECT_EQ(cudaLaunchKernelEx(&unasked, DivergeKernel, kNone), cudaErrorInvalidValue);
  cudaFuncSetAttribute(DivergeKernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 50000);
  EXPECT_EQ(cudaLaunchKernelEx(&unasked, DivergeKernel, kNone), cudaSuccess);
}

}  // namespace
}  // namespace zg::emulation
