// Matrix products with cuBLASLt: 16-bit operands are multiplied and added in f32, f32 ones in full
// f32 unless TF32 is requested. The same shapes give the same bits on the same device.
//
//   ZG_ASSIGN_OR_RETURN(std::unique_ptr<Matmul> matmul, Matmul::Make(shape, spec.gemm_choices));
//   matmul->Run({a, b, nullptr, c}, workspace, stream);
#pragma once

#include <cublasLt.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "framework/base/status.h"
#include "framework/kernels/gemm_choices.h"
#include "framework/tensor/dtype.h"

namespace zg::cuda {

// "cuBLASLt 130100": another version may choose other algorithms, which add in other orders.
std::string BlasVersion();

// Operands at multiples of so many bytes are aligned: others get an algorithm of their own.
inline constexpr uint32_t kMatmulAlignment = 16;

inline constexpr int64_t kMaxWorkspaceBytes = int64_t{32} << 20;

Status BlasStatus(cublasStatus_t status, const char* what);

// The epilogue of the product h = a b + bias before it is stored.
enum class MatmulEpilogue {
  kNone,      // c = h
  kGelu,      // c = gelu(h), from h before it is rounded; h is stored as well
  kGeluGrad,  // c = gelu'(h) a b, where h is read; there is no bias
};

// c (rows, columns) = a (rows, depth) times b (depth, columns), plus bias (columns) and addend
// (rows, columns), rounded once. All are row-major, of one dtype and dense; a transposed operand is
// stored as its transpose.
struct MatmulShape {
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t depth = 0;
  bool transpose_a = false;
  bool transpose_b = false;
  bool has_bias = false;
  bool has_addend = false;  // not with a gelu
  DType dtype = DType::kF32;
  bool tf32 = false;  // f32 operands are rounded to 10 bits of mantissa, for tensor cores
  MatmulEpilogue epilogue = MatmulEpilogue::kNone;
};

class Matmul {
 public:
  struct Operands {
    const void* a;
    const void* b;
    const void* bias;  // null without one
    void* c;
    void* h = nullptr;  // (rows, columns) like c, for epilogues with gelu; kGeluGrad only reads it
    const void* addend = nullptr;  // null without one; it does not overlap c
  };

  // Chooses the algorithm for the current device: that of `choices`, or, if these are null or have
  // none, the first one that cuBLASLt proposes. Errors: no handle; cuBLASLt has no algorithm; it
  // refuses the chosen one.
  static StatusOr<std::unique_ptr<Matmul>> Make(const MatmulShape& shape, GemmChoices* choices);
  // Null if cuBLASLt has no algorithm, as with a gelu whose rows do not divide by 8 elements, or if
  // there is nothing to multiply. That depends only on the shape and the device.
  static StatusOr<std::unique_ptr<Matmul>> MakeIfKnown(const MatmulShape& shape,
                                                       GemmChoices* choices);
  ~Matmul();
  Matmul(const Matmul&) = delete;
  Matmul& operator=(const Matmul&) = delete;

  // For a workspace at any address: the used part begins at a multiple of 256 bytes.
  int64_t workspace_bytes() const;
  // Whether there is an algorithm for operands at these addresses. With a gelu all of them must be
  // at multiples of 16 bytes.
  bool CanRun(const Operands& operands) const { return AlgorithmFor(operands) != nullptr; }
  Status Run(const Operands& operands, void* workspace, void* stream);
  bool has_addend() const { return shape_.has_addend; }

  // For measuring: at most this many algorithms for operands at multiples of `alignment` bytes, in
  // the order of cuBLASLt's preference.
  StatusOr<std::vector<cublasLtMatmulHeuristicResult_t>> Propose(uint32_t alignment,
                                                                 int most) const;
  // Like Run, but with a given algorithm, for a product that is not empty and a workspace at a
  // multiple of 256 bytes. Returns false if this algorithm cannot run after all.
  StatusOr<bool> RunBy(const cublasLtMatmulAlgo_t& algorithm, const Operands& operands,
                       void* workspace, int64_t workspace_bytes, void* stream) const;

 private:
  explicit Matmul(const MatmulShape& shape) : shape_(shape) {}
  Status Init(GemmChoices* choices);
  Status SetEpilogue();
  Status SetTerms(const void* bias, const void* h) const;
  // The algorithm for operands at multiples of `alignment` bytes, if there is one.
  StatusOr<std::optional<cublasLtMatmulAlgo_t>> ChooseAlgorithm(uint32_t alignment,
                                                                GemmChoices* choices);
  // Restores the algorithm that was chosen when this product was measured.
  StatusOr<cublasLtMatmulHeuristicResult_t> Restore(const std::string& product,
                                                    const GemmChoice& choice) const;
  // Null if there is none.
  const cublasLtMatmulAlgo_t* AlgorithmFor(const Operands& operands) const;
  bool is_empty() const { return shape_.rows == 0 || shape_.columns == 0; }
  bool has_gelu() const { return shape_.epilogue != MatmulEpilogue::kNone; }
  Status RunWithoutTerms(const Operands& operands, void* stream) const;

  const MatmulShape shape_;
  cublasLtHandle_t handle_ = nullptr;
  cublasLtMatmulDesc_t description_ = nullptr;
  // cuBLASLt is column-major: it computes c^T = b^T a^T.
  cublasLtMatrixLayout_t a_layout_ = nullptr;
  cublasLtMatrixLayout_t b_layout_ = nullptr;
  cublasLtMatrixLayout_t c_layout_ = nullptr;
  std::optional<cublasLtMatmulAlgo_t> aligned_;    // to kMatmulAlignment bytes
  std::optional<cublasLtMatmulAlgo_t> unaligned_;  // aligned only to single elements; none with a
                                                   // gelu
  int64_t workspace_bytes_ = 0;                    // of the algorithms
};

}  // namespace zg::cuda
