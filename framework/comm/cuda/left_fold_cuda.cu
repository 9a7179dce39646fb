#include <cuda_runtime.h>

#include <algorithm>

#include "framework/comm/cuda/left_fold_cuda.h"
#include "framework/device/cuda/cuda_status.h"

namespace zg {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kMaxBlocks = 2048;  // several per multiprocessor; each thread then loops

template <typename Term, typename Sum>
__global__ void FoldKernel(FoldInputs inputs, int64_t elements, Sum* output) {
  const int64_t stride = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < elements; i += stride) {
    FoldElement<Term, Sum>(inputs, i, output);
  }
}

}  // namespace

Status LeftFoldOnCuda(ReductionTypes types, const FoldInputs& inputs, int64_t elements,
                      std::byte* output, void* stream) {
  if (elements == 0) return Status::Ok();
  cudaLaunchConfig_t config = {};
  config.gridDim =
      static_cast<unsigned>(std::min(kMaxBlocks, (elements + kThreads - 1) / kThreads));
  config.blockDim = kThreads;
  config.stream = static_cast<cudaStream_t>(stream);
  cudaError_t error = cudaSuccess;
  WithFoldTypes(types.terms, types.sum, [&](auto term, auto sum) {
    using Sum = decltype(sum);
    error = cudaLaunchKernelEx(&config, FoldKernel<decltype(term), Sum>, inputs, elements,
                               reinterpret_cast<Sum*>(output));
  });
  return CudaStatus(error, "the sum over ranks");
}

}  // namespace zg
