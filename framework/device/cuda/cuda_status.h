// The error codes of the CUDA runtime as Status.
#pragma once

#include <cuda_runtime_api.h>

#include <string_view>

#include "framework/base/status.h"

namespace zg {

// `call` is what returned the code.
inline Status CudaStatus(cudaError_t code, std::string_view call) {
  if (code == cudaSuccess) return Status::Ok();
  return FailedPrecondition("{}: {} ({})", call.substr(0, call.find('(')), cudaGetErrorString(code),
                            cudaGetErrorName(code));
}

#define ZG_RETURN_IF_CUDA_ERROR(call) ZG_RETURN_IF_ERROR(::zg::CudaStatus(call, #call))

}  // namespace zg
