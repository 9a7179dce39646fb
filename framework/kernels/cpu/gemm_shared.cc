#include "framework/kernels/cpu/gemm_shared.h"

#include <algorithm>

#include "framework/kernels/cpu/sharing.h"

namespace zg {
namespace {

// The approximate cost of packing an element, in multiplications: each part packs its own rows of A
// and columns of B.
constexpr int64_t kPacking = 16;
constexpr int64_t kColumnUnit = 32;  // a cache line of 16-bit numbers

struct Grid {
  int rows = 0;
  int columns = 0;
};

// The way to cut a matrix of `rows` x `columns` units into `num_parts` equal parts with the least
// work; none, if it cannot be cut into so many.
Grid BestGrid(int num_parts, int64_t rows, int64_t row_unit, int64_t columns, int64_t column_unit) {
  Grid best;
  int64_t least = 0;
  for (int by_row = 1; by_row <= num_parts; ++by_row) {
    const Grid grid = {by_row, num_parts / by_row};
    if (grid.rows * grid.columns != num_parts || grid.rows > rows || grid.columns > columns)
      continue;
    const int64_t m = CeilDiv(rows, grid.rows) * row_unit;
    const int64_t n = CeilDiv(columns, grid.columns) * column_unit;
    const int64_t work = m * n + kPacking * (m + n);
    if (best.rows == 0 || work < least) {
      best = grid;
      least = work;
    }
  }
  return best;
}

// Few rows wait for the elements of B, each of which takes as long as so many multiplications.
constexpr int64_t kReading = 8;

const char* At(const void* data, int64_t elements, DType dtype) {
  return data == nullptr ? nullptr : static_cast<const char*>(data) + elements * SizeOf(dtype);
}

}  // namespace

int64_t CostOf(const GemmSizes& sizes) { return (sizes.m + kReading) * sizes.n * sizes.k; }

SharedGemm::SharedGemm(const GemmSizes& sizes, int threads)
    : SharedGemm(sizes, FastestGemmMethod(sizes.dtype), threads) {}

SharedGemm::SharedGemm(const GemmSizes& sizes, const GemmMethod& method, int threads)
    : sizes_(sizes) {
  const int64_t column_unit = RoundUp(kColumnUnit, method.column_unit);
  const int64_t rows = CeilDiv(sizes.m, method.row_unit);
  const int64_t columns = CeilDiv(sizes.n, column_unit);
  Grid grid;
  for (int num_parts = NumSharingProduct(threads, rows * columns, 1, CostOf(sizes));
       num_parts > 1 && grid.rows == 0; --num_parts) {
    grid = BestGrid(num_parts, rows, method.row_unit, columns, column_unit);
  }
  if (grid.rows == 0) grid = {1, 1};
  int64_t workspace = 0;
  for (int64_t i = 0; i < grid.rows; ++i) {
    const int64_t row = RangeBegin(sizes.m, method.row_unit, grid.rows, i);
    for (int64_t j = 0; j < grid.columns; ++j) {
      const int64_t column = RangeBegin(sizes.n, column_unit, grid.columns, j);
      GemmSizes part = sizes;
      part.m = RangeBegin(sizes.m, method.row_unit, grid.rows, i + 1) - row;
      part.n = RangeBegin(sizes.n, column_unit, grid.columns, j + 1) - column;
      parts_.push_back({row, column, workspace, Gemm(part, method)});
      workspace += WholeLines(parts_.back().gemm.workspace_bytes());
    }
  }
}

int64_t SharedGemm::workspace_bytes() const {
  return parts_.back().workspace + parts_.back().gemm.workspace_bytes();
}

void SharedGemm::Run(GemmOperand a, GemmOperand b, const GemmTerms& terms, void* c,
                     int64_t c_stride, void* workspace, Threads* threads) const {
  const auto run = [&](int64_t i, int) {
    const Part& part = parts_[i];
    const DType dtype = sizes_.dtype;
    const int64_t a_begin = part.row * (sizes_.transpose_a ? 1 : a.stride);
    const int64_t b_begin = part.column * (sizes_.transpose_b ? b.stride : 1);
    const int64_t c_begin = part.row * c_stride + part.column;
    part.gemm.Run({At(a.data, a_begin, dtype), a.stride}, {At(b.data, b_begin, dtype), b.stride},
                  {At(terms.bias, part.column, dtype), At(terms.addend, c_begin, dtype)},
                  const_cast<char*>(At(c, c_begin, dtype)), c_stride,
                  static_cast<char*>(workspace) + part.workspace);
  };
  if (threads != nullptr) return threads->Run(num_parts(), run);
  for (int i = 0; i < num_parts(); ++i) run(i, 0);
}

}  // namespace zg
