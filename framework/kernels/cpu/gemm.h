// Gemm: C = A B + bias in f32 on one thread, made once for given sizes and run on raw pointers. It
// allocates nothing; its scratch is the caller's.
//
//   const Gemm gemm({.m = rows, .n = columns, .k = depth, .transpose_b = true});
//   gemm.Run({a, lda}, {b, ldb}, bias, c, ldc, workspace);  // gemm.workspace_bytes(), aligned to
//   64
#pragma once

#include <cstdint>

namespace zg {

struct GemmSizes {
  int64_t m = 0;  // rows of C
  int64_t n = 0;  // columns of C
  int64_t k = 0;
  bool transpose_a = false;  // A is stored as (k, m), else as (m, k)
  bool transpose_b = false;  // B is stored as (n, k), else as (k, n)
};

// A matrix as stored, rows `stride` elements apart.
struct GemmOperand {
  const float* data = nullptr;
  int64_t stride = 0;
};

class Gemm {
 public:
  explicit Gemm(const GemmSizes& sizes);

  int64_t workspace_bytes() const;

  // `bias` has n elements, or is null. C does not overlap the rest.
  void Run(GemmOperand a, GemmOperand b, const float* bias, float* c, int64_t c_stride,
           void* workspace) const;

 private:
  // How the product is cut: a block of B (block_k_ x block_n_) is packed and meets all of A, in
  // packed blocks of block_m_ rows.
  int64_t block_m_;
  int64_t block_n_;
  int64_t block_k_;
  GemmSizes sizes_;
};

}  // namespace zg
