#include <cuda_runtime.h>

#include <algorithm>
#include <cstring>

#include "framework/base/check.h"
#include "framework/comm/cuda/fold_peers.h"
#include "framework/comm/fold_element.h"
#include "framework/device/cuda/cuda_status.h"

namespace zg {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kMaxBlocks = 2048;  // several per multiprocessor; each thread then loops
constexpr int64_t kPackBytes = 16;

template <typename T, int kCount>
struct alignas(sizeof(T) * kCount < kPackBytes ? sizeof(T) * kCount : kPackBytes) Pack {
  T values[kCount];
};

template <int kCount, typename T>
__device__ Pack<T, kCount> Load(const void* array, int64_t element) {
  return *reinterpret_cast<const Pack<T, kCount>*>(static_cast<const T*>(array) + element);
}

// Uses stores of 16 bytes where there are that many elements, because the compiler may split a
// Pack.
template <int kCount, typename T>
__device__ void Store(const Pack<T, kCount>& pack, T* to) {
  constexpr int kStored = kPackBytes / sizeof(T);
  if constexpr (kCount % kStored == 0) {
#pragma unroll
    for (int i = 0; i < kCount; i += kStored) {
      uint4 words;
      memcpy(&words, &pack.values[i], sizeof(words));
      __stwb(reinterpret_cast<uint4*>(to + i), words);
    }
  } else {
#pragma unroll
    for (int i = 0; i < kCount; ++i) to[i] = pack.values[i];
  }
}

template <int kCount, typename Term, typename Sum>
__device__ void FoldPack(const PeerTerms& inputs, int64_t begin, Sum* output) {
  decltype(Widened(Term())) sums[kCount];
  int next = 0;
  if (inputs.start != nullptr) {
    const Pack<Sum, kCount> start = Load<kCount, Sum>(inputs.start, begin);
#pragma unroll
    for (int i = 0; i < kCount; ++i) sums[i] = Widened(start.values[i]);
  } else {
    const Pack<Term, kCount> first = Load<kCount, Term>(inputs.terms[next++], begin);
#pragma unroll
    for (int i = 0; i < kCount; ++i) sums[i] = Widened(first.values[i]);
  }
  // Four loads in flight at once.
#pragma unroll 4
  for (; next < inputs.num_ranks; ++next) {
    const Pack<Term, kCount> terms = Load<kCount, Term>(inputs.terms[next], begin);
#pragma unroll
    for (int i = 0; i < kCount; ++i) sums[i] += Widened(terms.values[i]);
  }
  Pack<Sum, kCount> rounded;
#pragma unroll
  for (int i = 0; i < kCount; ++i) rounded.values[i] = Narrowed<Sum>::Of(sums[i]);
  Store(rounded, output + begin);
}

template <int kPack, typename Term, typename Sum>
__global__ void __launch_bounds__(kThreads)
    FoldPeersKernel(const __grid_constant__ PeerTerms inputs, int64_t elements, Sum* output) {
  const int64_t thread = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const int64_t stride = int64_t{gridDim.x} * blockDim.x * kPack;
  for (int64_t begin = thread * kPack; begin < elements; begin += stride) {
    if (begin + kPack <= elements) {
      FoldPack<kPack, Term>(inputs, begin, output);
    } else {
      for (int64_t i = begin; i < elements; ++i) FoldPack<1, Term>(inputs, i, output);
    }
  }
}

bool AreInPacks(const PeerTerms& inputs, const std::byte* output) {
  const auto is_aligned = [](const void* address) {
    return reinterpret_cast<uintptr_t>(address) % kPackBytes == 0;
  };
  return is_aligned(inputs.start) && is_aligned(output) &&
         std::all_of(inputs.terms, inputs.terms + inputs.num_ranks, is_aligned);
}

}  // namespace

Status FoldPeersOnCuda(ReductionTypes types, const PeerTerms& inputs, int64_t elements,
                       std::byte* output, void* stream) {
  ZG_CHECK(inputs.num_ranks >= 1 && inputs.num_ranks <= PeerTerms::kMaxRanks, "{} ranks",
           inputs.num_ranks);
  if (elements == 0) return Status::Ok();
  const bool in_packs = AreInPacks(inputs, output);
  const int64_t pack = in_packs ? kPackBytes / SizeOf(types.terms) : 1;
  const int64_t threads = (elements + pack - 1) / pack;
  cudaLaunchConfig_t config = {};
  config.gridDim = static_cast<unsigned>(std::min(kMaxBlocks, (threads + kThreads - 1) / kThreads));
  config.blockDim = kThreads;
  config.stream = static_cast<cudaStream_t>(stream);
  cudaError_t error = cudaSuccess;
  WithFoldTypes(types.terms, types.sum, [&](auto term, auto sum) {
    using Term = decltype(term);
    using Sum = decltype(sum);
    constexpr int kPack = kPackBytes / sizeof(Term);
    error = cudaLaunchKernelEx(
        &config, in_packs ? FoldPeersKernel<kPack, Term, Sum> : FoldPeersKernel<1, Term, Sum>,
        inputs, elements, reinterpret_cast<Sum*>(output));
  });
  return CudaStatus(error, "the sum over ranks");
}

}  // namespace zg
