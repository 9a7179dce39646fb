#include "framework/kernels/cpu/indexed_product.h"

#include <algorithm>
#include <cstring>

#include "framework/kernels/cpu/gemm_pack.h"
#include "framework/kernels/cpu/gemm_panels.h"
#include "framework/kernels/cpu/multiversion.h"
#include "framework/tensor/half.h"

namespace zg {
namespace {

constexpr int64_t kMaxDepth = 384;

template <int64_t kRun, typename T>
void CopyRuns(const IndexedMatrix<T>& from, int64_t depth, int64_t columns, int64_t width, T* to) {
  Multiversion([=]() ZG_VERSION {
    const IndexedMatrix<T> matrix = from;
    for (int64_t k = 0; k < depth; ++k) {
      const T* const row = matrix.data + matrix.rows[k];
      T* const out = to + k * width;
      for (int64_t j = 0; j < columns; j += kRun) {
        std::memcpy(out + j, row + matrix.columns[j], kRun * sizeof(T));
      }
      for (int64_t j = columns; j < width; ++j) out[j] = T{};
    }
  });
}

}  // namespace

int64_t RunOf(const std::vector<int64_t>& columns, int64_t period) {
  for (int64_t run = 16; run > 1; run /= 2) {
    bool fits = period % run == 0;
    for (size_t j = 0; j < columns.size() && fits; ++j) {
      fits = j % run == 0 || columns[j] == columns[j - 1] + 1;
    }
    if (fits) return run;
  }
  return 1;
}

template <typename T>
void CopyIndexed(const IndexedMatrix<T>& matrix, int64_t depth, int64_t columns, int64_t width,
                 T* out) {
  switch (matrix.run) {
    case 16:
      return CopyRuns<16>(matrix, depth, columns, width, out);
    case 8:
      return CopyRuns<8>(matrix, depth, columns, width, out);
    case 4:
      return CopyRuns<4>(matrix, depth, columns, width, out);
    case 2:
      return CopyRuns<2>(matrix, depth, columns, width, out);
    default:
      return CopyRuns<1>(matrix, depth, columns, width, out);
  }
}

template void CopyIndexed<float>(const IndexedMatrix<float>&, int64_t, int64_t, int64_t, float*);
template void CopyIndexed<BFloat16>(const IndexedMatrix<BFloat16>&, int64_t, int64_t, int64_t,
                                    BFloat16*);

int64_t IndexedBlockDepth(int64_t depth) {
  return std::max<int64_t>(1, CeilDiv(depth, CeilDiv(std::max<int64_t>(1, depth), kMaxDepth)));
}

void Multiply(const IndexedProduct& product, float* panel) {
  PanelProduct panels;
  panels.pieces = product.a;
  panels.pieces_depth = product.depth;
  panels.rows = product.rows;
  for (int64_t j = 0; j < product.columns; j += panels.width) {
    panels.Begin(j, product.columns, panel, product.c, product.c_stride);
    panels.tile.depth = product.depth;
    panels.tile.continues = product.continues;
    IndexedMatrix<float> b = product.b;
    b.columns += j;
    CopyIndexed(b, product.depth, panels.tile.columns, panels.width, panel);
    MultiplyPanel<ComputeTile>(panels);
  }
}

}  // namespace zg
