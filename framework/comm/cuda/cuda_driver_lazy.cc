#include "framework/comm/cuda/cuda_driver_lazy.h"

#include <cuda.h>

#include "framework/device/cuda/lazy_library.h"

namespace zg {
namespace {

const LazyLibrary& Driver() {
  static const LazyLibrary* const library = new LazyLibrary("libcuda.so.1");
  return *library;
}

// Uses the library's own names, because cuda.h has macros that turn the plain ones into these.
auto BatchMemOp() {
  static const auto function = Driver().Find<decltype(cuStreamBatchMemOp)>("cuStreamBatchMemOp_v2");
  return function;
}

}  // namespace

Status LoadCudaDriver() {
  if (!Driver().problem().empty()) {
    return FailedPrecondition("the CUDA driver cannot be loaded: {}", Driver().problem());
  }
  if (BatchMemOp() == nullptr) {
    return FailedPrecondition(
        "the CUDA driver has no cuStreamBatchMemOp_v2; install one of CUDA 12 or later");
  }
  return Status::Ok();
}

}  // namespace zg

extern "C" {

CUresult CUDAAPI cuStreamBatchMemOp(CUstream stream, unsigned int count,
                                    CUstreamBatchMemOpParams* operations, unsigned int flags) {
  return zg::CallOr(CUDA_ERROR_NOT_INITIALIZED, zg::BatchMemOp(), stream, count, operations, flags);
}

CUresult CUDAAPI cuGetErrorName(CUresult error, const char** name) {
  static const auto function = zg::Driver().Find<decltype(cuGetErrorName)>("cuGetErrorName");
  return zg::CallOr(CUDA_ERROR_NOT_INITIALIZED, function, error, name);
}

}  // extern "C"
