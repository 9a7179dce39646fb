// The cuBLASLt functions that the kernels call; they load the library at their first call. If it
// were linked as usual, it would cost 200 MB and a sixth of a second at the start of every process.
// The linker reports a function that is missing here.
#include <cublasLt.h>

#include <string>

#include "framework/device/cuda/lazy_library.h"

namespace {

const zg::LazyLibrary& CublasLt() {
  static const auto* const library =
      new zg::LazyLibrary("libcublasLt.so." + std::to_string(CUBLAS_VER_MAJOR));
  return *library;
}

}  // namespace

#define ZG_CALL(name, ...)                                             \
  static const auto function = CublasLt().Find<decltype(name)>(#name); \
  return zg::CallOr(CUBLAS_STATUS_NOT_INITIALIZED, function, __VA_ARGS__)

extern "C" {

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) { ZG_CALL(cublasLtCreate, handle); }

const char* cublasLtGetStatusName(cublasStatus_t status) {
  static const auto function =
      CublasLt().Find<decltype(cublasLtGetStatusName)>("cublasLtGetStatusName");
  return function == nullptr ? CublasLt().problem().c_str() : function(status);
}

// 0 if there is no library.
size_t cublasLtGetVersion() {
  static const auto function = CublasLt().Find<decltype(cublasLtGetVersion)>("cublasLtGetVersion");
  return function == nullptr ? 0 : function();
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t operation,
                              const void* alpha, const void* a, cublasLtMatrixLayout_t a_layout,
                              const void* b, cublasLtMatrixLayout_t b_layout, const void* beta,
                              const void* c, cublasLtMatrixLayout_t c_layout, void* d,
                              cublasLtMatrixLayout_t d_layout,
                              const cublasLtMatmulAlgo_t* algorithm, void* workspace,
                              size_t workspace_bytes, cudaStream_t stream) {
  ZG_CALL(cublasLtMatmul, handle, operation, alpha, a, a_layout, b, b_layout, beta, c, c_layout, d,
          d_layout, algorithm, workspace, workspace_bytes, stream);
}

cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t handle, cublasLtMatmulDesc_t operation,
                                       cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                       cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                       const cublasLtMatmulAlgo_t* algorithm,
                                       cublasLtMatmulHeuristicResult_t* result) {
  ZG_CALL(cublasLtMatmulAlgoCheck, handle, operation, a, b, c, d, algorithm, result);
}

cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(const cublasLtMatmulAlgo_t* algorithm,
                                                    cublasLtMatmulAlgoConfigAttributes_t attribute,
                                                    void* value, size_t bytes, size_t* written) {
  ZG_CALL(cublasLtMatmulAlgoConfigGetAttribute, algorithm, attribute, value, bytes, written);
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle,
                                              cublasLtMatmulDesc_t operation,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int requested,
                                              cublasLtMatmulHeuristicResult_t* results,
                                              int* returned) {
  ZG_CALL(cublasLtMatmulAlgoGetHeuristic, handle, operation, a, b, c, d, preference, requested,
          results, returned);
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* operation,
                                        cublasComputeType_t compute, cudaDataType_t scale) {
  ZG_CALL(cublasLtMatmulDescCreate, operation, compute, scale);
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t operation) {
  ZG_CALL(cublasLtMatmulDescDestroy, operation);
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t operation,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void* value, size_t bytes) {
  ZG_CALL(cublasLtMatmulDescSetAttribute, operation, attribute, value, bytes);
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  ZG_CALL(cublasLtMatmulPreferenceCreate, preference);
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  ZG_CALL(cublasLtMatmulPreferenceDestroy, preference);
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void* value, size_t bytes) {
  ZG_CALL(cublasLtMatmulPreferenceSetAttribute, preference, attribute, value, bytes);
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type,
                                          uint64_t rows, uint64_t columns, int64_t stride) {
  ZG_CALL(cublasLtMatrixLayoutCreate, layout, type, rows, columns, stride);
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  ZG_CALL(cublasLtMatrixLayoutDestroy, layout);
}

}  // extern "C"
