#include "framework/kernels/cpu/query_heads.h"

#include "framework/kernels/cpu/gemm_pack.h"
#include "framework/kernels/cpu/gemm_panels.h"
#include "framework/kernels/cpu/lanes.h"
#include "framework/kernels/cpu/multiversion.h"
#include "framework/kernels/math/vector_math.h"

namespace zg {
namespace {

// Turns products into weights e^(scale * product - maximum) and returns their sum in the order of
// the keys.
ZG_INLINE float SoftmaxRowOf(float scale, int64_t keys, float* row) {
  ZG_INDEPENDENT
  for (int64_t key = 0; key < keys; ++key) row[key] *= scale;
  const float maximum = MaximumOf(row, keys);
  ZG_INDEPENDENT
  for (int64_t key = 0; key < keys; ++key) row[key] = Exp(row[key] - maximum);
  float sum = 0.0f;
  for (int64_t key = 0; key < keys; ++key) sum += row[key];
  return sum;
}
float SoftmaxRow(float scale, int64_t keys, float* row) {
  return Multiversion([=]() ZG_VERSION { return SoftmaxRowOf(scale, keys, row); });
}

void Scale(float factor, int64_t count, float* row) {
  Multiversion([=]() ZG_VERSION {
    ZG_INDEPENDENT
    for (int64_t i = 0; i < count; ++i) row[i] *= factor;
  });
}

// Calls set_b(column, tile) for every panel of the product of `rows` packed rows, which sets the
// tile's panel of B, and multiplies with it.
template <typename SetB>
void MultiplyPanels(const float* pieces, int64_t rows, int64_t depth, int64_t columns, float* c,
                    int64_t c_stride, const SetB& set_b) {
  PanelProduct product;
  product.pieces = pieces;
  product.pieces_depth = depth;
  product.rows = rows;
  for (int64_t column = 0; column < columns; column += product.width) {
    product.width = PanelWidth(columns - column);
    product.next_c = c + column + product.width;
    GemmTile& tile = product.tile;
    tile.a_stride = kTileRows;
    tile.b_stride = product.width;
    tile.c = c + column;
    tile.c_stride = c_stride;
    tile.depth = depth;
    tile.columns = std::min(product.width, columns - column);
    set_b(column, tile);
    MultiplyPanel<ComputeTile>(product);
  }
}

}  // namespace

void RunQueryHeads(const AttentionShape& shape, const HeadInput& q, const HeadInput& k,
                   const HeadInput& v, const QueryScratch& scratch, const HeadOutput& out) {
  const int64_t heads = shape.group();
  const int64_t size = shape.head_size;
  const auto* const keys = static_cast<const float*>(k.data);
  const auto* const values = static_cast<const float*>(v.data);
  auto* const results = static_cast<float*>(out.data);
  PackPieces(static_cast<const float*>(q.data), size, size, heads, scratch.queries);
  MultiplyPanels(scratch.queries, heads, size, shape.keys, scratch.weights, shape.keys,
                 [&](int64_t key, GemmTile& tile) {
                   PackTransposedPanels(keys + key * k.stride, k.stride, tile.b_stride * k.stride,
                                        size, tile.columns, scratch.panel);
                   tile.b = scratch.panel;
                 });
  for (int64_t h = 0; h < heads; ++h) {
    scratch.sums[h] = SoftmaxRow(shape.scale, shape.keys, scratch.weights + h * shape.keys);
  }
  PackPieces(scratch.weights, shape.keys, shape.keys, heads, scratch.packed_weights);
  MultiplyPanels(scratch.packed_weights, heads, shape.keys, size, results, size,
                 [&](int64_t channel, GemmTile& tile) {
                   tile.b = values + channel;
                   tile.b_stride = v.stride;
                 });
  for (int64_t h = 0; h < heads; ++h) Scale(1.0f / scratch.sums[h], size, results + h * size);
}

}  // namespace zg
