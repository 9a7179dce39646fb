// The result of a product of the emulated cuBLASLt.
#pragma once

#include <cublasLt.h>

#include <cstdint>

#include "tests/cuda_emulation/products.h"

struct CublasLtMatmulDesc {
  cublasComputeType_t compute;
  cublasOperation_t transpose_a = CUBLAS_OP_N;
  cublasOperation_t transpose_b = CUBLAS_OP_N;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  int64_t aux_stride = 0;
  void* aux = nullptr;
  const void* bias = nullptr;

  bool has_bias() const {
    return epilogue == CUBLASLT_EPILOGUE_BIAS || epilogue == CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
  }
  bool has_aux() const { return epilogue > CUBLASLT_EPILOGUE_BIAS; }
  bool writes_aux() const { return has_aux() && epilogue != CUBLASLT_EPILOGUE_DGELU; }
};

struct CublasLtMatrixLayout {
  cudaDataType type;
  int64_t rows;
  int64_t columns;
  int64_t stride;  // between columns

  bool operator==(const CublasLtMatrixLayout& other) const {
    return type == other.type && rows == other.rows && columns == other.columns &&
           stride == other.stride;
  }
};

namespace zg::emulation {

struct ProductCall {
  CublasLtMatmulDesc op;
  CublasLtMatrixLayout a_layout, b_layout, c_layout, d_layout;
  Order order;
  const void* a;
  const void* b;
  const void* c;  // null without an addend
  void* d;
};
void Multiply(const ProductCall& call);

}  // namespace zg::emulation
