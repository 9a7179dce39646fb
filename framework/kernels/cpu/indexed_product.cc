#include "framework/kernels/cpu/indexed_product.h"

#include <algorithm>
#include <cstring>

#include "framework/kernels/cpu/gemm_pack.h"
#include "framework/kernels/cpu/gemm_panels.h"
#include "framework/kernels/cpu/multiversion.h"

namespace zg {
namespace {

constexpr int64_t kMaxDepth = 384;

// Packs `columns` columns of a panel of width `width`, padded with zeros.
template <int64_t kRun>
void PackPanel(const IndexedMatrix& matrix, int64_t depth, int64_t columns, int64_t width,
               float* panel) {
  Multiversion([=]() ZG_VERSION {
    const IndexedMatrix b = matrix;
    for (int64_t k = 0; k < depth; ++k) {
      const float* const row = b.data + b.rows[k];
      float* const out = panel + k * width;
      for (int64_t j = 0; j < columns; j += kRun) {
        std::memcpy(out + j, row + b.columns[j], kRun * sizeof(float));
      }
      for (int64_t j = columns; j < width; ++j) out[j] = 0.0f;
    }
  });
}

using PackFunction = void (*)(const IndexedMatrix&, int64_t, int64_t, int64_t, float*);

PackFunction PackOf(int64_t run) {
  switch (run) {
    case 16:
      return PackPanel<16>;
    case 8:
      return PackPanel<8>;
    case 4:
      return PackPanel<4>;
    case 2:
      return PackPanel<2>;
    default:
      return PackPanel<1>;
  }
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

int64_t IndexedBlockDepth(int64_t depth) {
  return std::max<int64_t>(1, CeilDiv(depth, CeilDiv(std::max<int64_t>(1, depth), kMaxDepth)));
}

void Multiply(const IndexedProduct& product, float* panel) {
  const PackFunction pack = PackOf(product.b.run);
  PanelProduct panels;
  panels.pieces = product.a;
  panels.pieces_depth = product.depth;
  panels.rows = product.rows;
  for (int64_t j = 0; j < product.columns; j += panels.width) {
    panels.Begin(j, product.columns, panel, product.c, product.c_stride);
    panels.tile.depth = product.depth;
    panels.tile.continues = product.continues;
    IndexedMatrix b = product.b;
    b.columns += j;
    pack(b, product.depth, panels.tile.columns, panels.width, panel);
    MultiplyPanel<ComputeTile>(panels);
  }
}

}  // namespace zg
