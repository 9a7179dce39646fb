// Products with a matrix whose elements are anywhere in memory, such as the windows of an image: an
// operand of a convolution is packed for the micro-kernel (gemm_tile.h) straight from the image.
//
// An element of the result is one chain of fused multiply-adds over ascending k, as in gemm.h.
#pragma once

#include <cstdint>
#include <vector>

#include "framework/kernels/cpu/gemm_method.h"
#include "framework/kernels/cpu/gemm_tile.h"

namespace zg {

// Element (k, j) at data[rows[k] + columns[j]]. T is float or BFloat16.
template <typename T>
struct IndexedMatrix {
  const T* data = nullptr;
  const int64_t* rows = nullptr;
  const int64_t* columns = nullptr;
  int64_t run = 1;  // of RunOf(columns, ...)
};

// To (depth, width), of which columns beyond the matrix's are zeros.
template <typename T>
void CopyIndexed(const IndexedMatrix<T>& matrix, int64_t depth, int64_t columns, int64_t width,
                 T* out);

// The largest of 16, 8, 4, 2 and 1 such that `period` consists of runs of that many columns, each
// contiguous in memory; `columns` are those of one or several periods.
int64_t RunOf(const std::vector<int64_t>& columns, int64_t period);

// The largest depth that IndexedProduct takes at once; a larger `depth` is cut into such blocks.
int64_t IndexedBlockDepth(int64_t depth);

// C (rows, columns) = or += A B, where A is packed in pieces (gemm_pack.h) of `depth`.
struct IndexedProduct {
  const float* a = nullptr;
  IndexedMatrix<float> b;
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t depth = 0;  // at most IndexedBlockDepth
  float* c = nullptr;
  int64_t c_stride = 0;
  bool continues = false;  // sums start at the values of C
};
// `panel`: IndexedPanelFloats(depth) floats, 64-byte aligned.
void Multiply(const IndexedProduct& product, float* panel);
constexpr int64_t IndexedPanelFloats(int64_t depth) { return kMaxPanelWidth * depth; }

}  // namespace zg
