// Helpers of the CUDA kernels' host code: dtype checks, launches and their errors.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <memory>
#include <utility>

#include "framework/base/status.h"
#include "framework/kernels/kernel.h"

namespace zg::cuda {

inline constexpr int kThreads = 256;  // in most blocks
inline constexpr int kWarp = 32;

inline int64_t CeilDivide(int64_t a, int64_t b) { return (a + b - 1) / b; }

// A tensor as rows of its last dim.
struct MatrixShape {
  int64_t rows = 1;
  int64_t columns = 1;
};
MatrixShape AsMatrix(const Shape& shape);

// The status of a CUDA error: `what` could not be done. The error may come from an earlier kernel.
Status CudaStatus(cudaError_t error, const char* what);

// Error if an operand is not floating-point, i64 or bool.
Status CheckCudaTypes(const KernelSpec& spec);

// The factory of a kernel that can be made for every spec of its op: KernelType(spec, kArguments...).
template <typename KernelType, auto... kArguments>
StatusOr<std::unique_ptr<Kernel>> MakeKernel(const KernelSpec& spec) {
  ZG_RETURN_IF_ERROR(CheckCudaTypes(spec));
  return std::unique_ptr<Kernel>(std::make_unique<KernelType>(spec, kArguments...));
}

// True if an access of `bytes` bytes at each of these addresses is aligned.
template <typename... Pointers>
bool AreAligned(int64_t bytes, const Pointers*... pointers) {
  return ((reinterpret_cast<uintptr_t>(pointers) % bytes == 0) && ...);
}

struct LaunchShape {
  dim3 grid;
  dim3 block = kThreads;
  int64_t shared_bytes = 0;
};

// One block for each kThreads of `threads` threads.
inline LaunchShape Threads(int64_t threads) {
  return {dim3(static_cast<unsigned>(CeilDivide(threads, kThreads)))};
}

// For Launch(), whose code is there once for every kernel.
cudaLaunchConfig_t LaunchConfig(const LaunchShape& shape, void* stream);
Status LaunchStatus(cudaError_t error);

// Puts a kernel on the queue; does nothing if the grid is empty.
template <typename... Parameters, typename... Arguments>
Status Launch(void (*kernel)(Parameters...), const LaunchShape& shape, void* stream,
              Arguments&&... arguments) {
  if (shape.grid.x == 0 || shape.grid.y == 0 || shape.grid.z == 0) return Status::Ok();
  const cudaLaunchConfig_t config = LaunchConfig(shape, stream);
  return LaunchStatus(cudaLaunchKernelEx(&config, kernel, std::forward<Arguments>(arguments)...));
}

}  // namespace zg::cuda
