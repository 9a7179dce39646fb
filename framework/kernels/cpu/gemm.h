// Gemm: C = A B + bias + addend on one thread, made once for given sizes and run on raw pointers.
// It allocates nothing; the caller provides its scratch. Operands in bf16 or f16 are widened while
// they are packed into the scratch, or multiplied by the processor's bf16 instructions; sums are in
// f32 and rounded once.
//
//   GemmSizes sizes;
//   sizes.m = rows, sizes.n = columns, sizes.k = depth;
//   const Gemm gemm(sizes);
//   gemm.Run({a, lda}, {b, ldb}, bias, c, ldc, workspace);  // 64-byte aligned scratch
//
// The bits of an element depend only on its row of A, its column of B, its bias, the method and the
// parts.
// oneDNN guarantees neither property: each of its paths allocates while it runs, dnnl_sgemm
// megabytes.
#pragma once

#include <cstdint>
#include <vector>

#include "framework/kernels/cpu/gemm_method.h"
#include "framework/tensor/dtype.h"

namespace zg {

// A sum over k in parts: each part is summed by itself, from bias or zero, and then neighbours are
// added, and sums of neighbours. With k in several equal groups, such as those of q, k and v side by
// side, each part has its share of every group.
struct GemmParts {
  int64_t count = 1;  // a power of two; more than one only in f32
  int64_t groups = 1;
};

struct GemmSizes {
  int64_t m = 0;  // rows of C
  int64_t n = 0;  // columns of C
  int64_t k = 0;
  bool transpose_a = false;   // A is stored as (k, m), else as (m, k)
  bool transpose_b = false;   // B is stored as (n, k), else as (k, n)
  DType dtype = DType::kF32;  // of A, B, C and bias: f32, bf16 or f16
  GemmParts parts = {};
  bool packed_b = false;  // B is what Gemm::PackB has made of it
};

// A matrix as stored, rows `stride` elements apart.
struct GemmOperand {
  const void* data = nullptr;
  int64_t stride = 0;
};

// The terms added to a product; each may be null.
struct GemmTerms {
  GemmTerms(const void* bias = nullptr, const void* addend = nullptr)  // NOLINT: a bias is one
      : bias(bias), addend(addend) {}

  const void* bias;    // n elements
  const void* addend;  // (m, n), with the stride of C: added after rounding
};

// The fastest method of this processor, for operands in `dtype`.
const GemmMethod& FastestGemmMethod(DType dtype);

struct PanelProduct;  // gemm_panels.h

class Gemm {
 public:
  explicit Gemm(const GemmSizes& sizes);                   // by FastestGemmMethod
  Gemm(const GemmSizes& sizes, const GemmMethod& method);  // `method` outlives the Gemm

  int64_t workspace_bytes() const;

  // For several products with one B that is packed once: its size, and B as Run takes it, 64-byte
  // aligned.
  int64_t packed_b_bytes() const;
  void PackB(GemmOperand b, void* packed) const;

  // C must not overlap the other operands.
  void Run(GemmOperand a, GemmOperand b, const GemmTerms& terms, void* c, int64_t c_stride,
           void* workspace) const;

 private:
  struct Operands {
    GemmOperand a;
    GemmOperand b;
    GemmTerms terms;
    void* c;
    int64_t c_stride;
  };

  // Successive k that are multiplied at once.
  struct Depth {
    int64_t begin = 0;
    int64_t count = 0;
    int64_t part = 0;
    bool begins_part = false;
    bool ends_part = false;
  };

  bool is_empty() const { return sizes_.m == 0 || sizes_.n == 0; }
  bool is_f32() const { return sizes_.dtype == DType::kF32; }
  bool runs_many_rows() const;
  bool runs_columns() const;
  bool runs_blocks() const;      // unless it runs columns
  bool reads_long_rows() const;  // if it runs neither
  bool is_bound_by_stores() const;
  int64_t run_of_part() const { return sizes_.k / (sizes_.parts.count * sizes_.parts.groups); }
  std::vector<Depth> Depths() const;
  // Sums of parts beside those in C: blocks of the scratch with all rows of a block of columns.
  int num_parted_sums() const;
  // In f32, sums are accumulated in C itself. In 16 bits they are accumulated apart from it: for
  // all rows of a block of columns if k is cut, else for some columns of a block of rows.
  bool cuts_k() const { return sizes_.k > block_k_; }
  int64_t sum_stride() const { return cuts_k() ? block_n_ : sum_columns_; }
  int64_t sums_size() const;
  int64_t packed_a_size() const { return method_->PackedASize(block_m_, block_k_); }
  int64_t packed_b_size() const;  // of a block; not if B is packed already
  int64_t packed_block_size() const;

  StoredBlock BlockOfA(const GemmOperand& a, int64_t row, int64_t k, int64_t depth) const;
  StoredBlock BlockOfB(const GemmOperand& b, int64_t column, int64_t k, int64_t depth) const;

  // Packs a block of B (block_k_ x block_n_) and multiplies all of A with it, in packed blocks of
  // block_m_ rows.
  void RunBlocks(const Operands& operands, float* workspace) const;
  // With few rows every element of B is used only a few times, so memory bandwidth decides: B is
  // not packed. If it is stored by columns, these are multiplied as they lie.
  void RunColumns(const Operands& operands, float* workspace) const;
  // If it is stored by rows, in f32, they are read in place, a few at a time.
  void RunFewRows(const Operands& operands, float* workspace) const;
  // One panel of it, from `column` and `k` of B.
  void RunRowsInPlace(const GemmOperand& b, int64_t column, int64_t k, float* panel,
                      PanelProduct& product) const;

  GemmSizes sizes_;
  const GemmMethod* method_;
  int64_t block_m_ = 0;
  int64_t block_n_ = 0;
  int64_t block_k_ = 0;
  int64_t sum_columns_ = 0;
  std::vector<Depth> depths_;
};

}  // namespace zg
