// The error codes of the CUDA runtime as Status.
#pragma once

#include <cuda_runtime_api.h>

#include <string_view>

#include "framework/base/status.h"

namespace zg {

// Whether a kernel has failed on the device. Then every later call returns the code, whatever its
// purpose.
inline bool IsKernelFailure(cudaError_t code) {
  switch (code) {
    case cudaErrorAssert:
    case cudaErrorECCUncorrectable:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalAddress:
    case cudaErrorIllegalInstruction:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
    case cudaErrorLaunchTimeout:
    case cudaErrorMisalignedAddress:
      return true;
    default:
      return false;
  }
}

// `call` is the function that returned the code.
inline Status CudaStatus(cudaError_t code, std::string_view call) {
  if (code == cudaSuccess) return Status::Ok();
  const std::string_view what = IsKernelFailure(code)
                                    ? "a kernel failed, this one or one queued before it (with "
                                      "CUDA_LAUNCH_BLOCKING=1, this one)"
                                    : call.substr(0, call.find('('));
  return FailedPrecondition("{}: {} ({})", what, cudaGetErrorString(code), cudaGetErrorName(code));
}

#define ZG_RETURN_IF_CUDA_ERROR(call) ZG_RETURN_IF_ERROR(::zg::CudaStatus(call, #call))

}  // namespace zg
