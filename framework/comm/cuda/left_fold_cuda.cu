#include <cuda_runtime.h>

#include <algorithm>

#include "framework/comm/cuda/left_fold_cuda.h"
#include "framework/device/cuda/cuda_status.h"

namespace zg {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kMaxBlocks = 2048;  // some for every multiprocessor; each thread then goes on

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
  const auto blocks =
      static_cast<unsigned>(std::min(kMaxBlocks, (elements + kThreads - 1) / kThreads));
  WithFoldTypes(types.terms, types.sum, [&](auto term, auto sum) {
    FoldKernel<decltype(term), decltype(sum)>
        <<<blocks, kThreads, 0, static_cast<cudaStream_t>(stream)>>>(
            inputs, elements, reinterpret_cast<decltype(sum)*>(output));
  });
  return CudaStatus(cudaGetLastError(), "the sum over ranks");
}

}  // namespace zg
