// Matrix products by cuBLASLt: 16-bit operands are multiplied and added up in f32, f32 ones in full
// f32 unless TF32 is asked for. The same shapes give the same bits on the same device.
//
//   ZG_ASSIGN_OR_RETURN(std::unique_ptr<Matmul> matmul, Matmul::Make({m, n, k, false, true,
//   dtype})); matmul->Run({a, b, nullptr, c}, workspace, stream);
#pragma once

#include <cublasLt.h>

#include <cstdint>
#include <memory>
#include <optional>

#include "framework/base/status.h"
#include "framework/tensor/dtype.h"

namespace zg::cuda {

// c (rows, columns) = a (rows, depth) times b (depth, columns), plus bias (columns). All are
// row-major, of one dtype and dense; a transposed operand lies in memory as its transpose.
struct MatmulShape {
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t depth = 0;
  bool transpose_a = false;
  bool transpose_b = false;
  bool has_bias = false;
  DType dtype = DType::kF32;
  bool tf32 = false;  // f32 operands are rounded to 10 bits of mantissa, for tensor cores
};

class Matmul {
 public:
  struct Operands {
    const void* a;
    const void* b;
    const void* bias;  // null without one
    void* c;
  };

  // Chooses the algorithm, for the current device. Error: no handle, or cuBLASLt knows no way.
  static StatusOr<std::unique_ptr<Matmul>> Make(const MatmulShape& shape);
  ~Matmul();
  Matmul(const Matmul&) = delete;
  Matmul& operator=(const Matmul&) = delete;

  // For a workspace at any address: what is used of it begins at a multiple of 256 bytes.
  int64_t workspace_bytes() const;
  Status Run(const Operands& operands, void* workspace, void* stream);

 private:
  explicit Matmul(const MatmulShape& shape) : shape_(shape) {}
  Status Init();
  // The best algorithm for operands at multiples of `alignment` bytes; none if there is none.
  StatusOr<std::optional<cublasLtMatmulAlgo_t>> ChooseAlgorithm(uint32_t alignment);
  bool is_empty() const { return shape_.rows == 0 || shape_.columns == 0; }
  Status RunWithoutTerms(const Operands& operands, void* stream) const;

  const MatmulShape shape_;
  cublasLtHandle_t handle_ = nullptr;
  cublasLtMatmulDesc_t description_ = nullptr;
  // cuBLASLt is column-major: it computes c^T = b^T a^T.
  cublasLtMatrixLayout_t a_layout_ = nullptr;
  cublasLtMatrixLayout_t b_layout_ = nullptr;
  cublasLtMatrixLayout_t c_layout_ = nullptr;
  std::optional<cublasLtMatmulAlgo_t> aligned_;    // to kAlignment bytes
  std::optional<cublasLtMatmulAlgo_t> unaligned_;  // but for single elements
  int64_t workspace_bytes_ = 0;                    // of the algorithms
};

}  // namespace zg::cuda
