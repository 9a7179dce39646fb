// The part of the CUDA driver that this project uses, on the host (tests/cuda_emulation). It
// replaces the toolkit's header of this name.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

using CUstream = struct CUstream_st*;
using CUdeviceptr = unsigned long long;

enum CUresult {
  CUDA_SUCCESS,
  CUDA_ERROR_INVALID_VALUE,
  CUDA_ERROR_NOT_INITIALIZED,
  CUDA_ERROR_ILLEGAL_ADDRESS,
};
enum CUstreamBatchMemOpType {
  CU_STREAM_MEM_OP_WAIT_VALUE_32 = 1,
  CU_STREAM_MEM_OP_WRITE_VALUE_32 = 2,
};
enum { CU_STREAM_WAIT_VALUE_GEQ, CU_STREAM_WAIT_VALUE_EQ };
enum { CU_STREAM_WRITE_VALUE_DEFAULT };

union CUstreamBatchMemOpParams {
  CUstreamBatchMemOpType operation;
  struct {
    CUstreamBatchMemOpType operation;
    CUdeviceptr address;
    uint32_t value;
    unsigned flags;
  } waitValue, writeValue;
};

CUresult cuStreamBatchMemOp(CUstream stream, unsigned count, CUstreamBatchMemOpParams* operations,
                            unsigned flags);
CUresult cuGetErrorName(CUresult error, const char** name);
