#include "framework/kernels/cpu/attention_blocks.h"

#include <algorithm>

namespace zg {
namespace {

// Products over positions take two units of depth, if a unit is more than one position: with less
// depth, loads and stores of the sums would outweigh the additions. Blocks are larger where none is
// skipped.
int64_t PositionsOfBlock(const AttentionCall& call, const GemmMethod& method) {
  const int64_t least = RoundUp(std::max(kScoreColumn, 2 * method.depth_unit), kScoreColumn);
  const bool skips_blocks = call.causal || call.window > 0;
  return skips_blocks ? least : std::max(least, 2 * kScoreColumn);
}

// The number of positions of the block from `begin` on.
int64_t BlockOf(const AttentionShape& shape, const HeadInput& head, int64_t begin) {
  return std::min(shape.block, head.positions - begin);
}

}  // namespace

AttentionShape::AttentionShape(const ir::OpCall& call, bool is_gradient, const GemmMethod& products)
    : AttentionCall(call, is_gradient),
      method(&products),
      block(PositionsOfBlock(*this, products)) {}

int64_t AttentionShape::end_key(int64_t begin) const {
  const int64_t last = begin + num_queries(begin) - 1 + offset();  // position of the last query
  int64_t end = keys;
  if (causal) end = std::min(end, last + 1);
  if (window > 0) end = std::min(end, last + window);
  return std::min(RoundUp(std::max<int64_t>(end, 1), block), keys);
}

int64_t AttentionShape::first_key(int64_t begin) const {
  if (window == 0) return 0;
  const int64_t first = std::max<int64_t>(begin + offset() - window + 1, 0);
  return std::min(first, end_key(begin) - 1) / block * block;
}

void PackRows(const AttentionShape& shape, const HeadInput& head, int64_t begin, float* packed) {
  shape.method->pack_a(
      {head.At(begin), head.stride, true, BlockOf(shape, head, begin), shape.head_size}, packed);
}

void PackColumns(const AttentionShape& shape, const HeadInput& head, int64_t begin, float* packed) {
  shape.method->pack_b(
      {head.At(begin), head.stride, true, BlockOf(shape, head, begin), shape.head_size}, packed);
}

void PackTerms(const AttentionShape& shape, const HeadInput& head, int64_t begin, float* packed) {
  shape.method->pack_b(
      {head.At(begin), head.stride, false, shape.head_size, BlockOf(shape, head, begin)}, packed);
}

void MultiplyKeys(const AttentionShape& shape, int64_t begin, const float* keys,
                  const float* queries, float* scores) {
  const int64_t first = shape.first_key(begin);
  BlockProduct product;
  product.a = keys + first / shape.block * shape.rows_size();
  product.b = queries;
  product.rows = shape.end_key(begin) - first;
  product.columns = shape.num_queries(begin);
  product.depth = shape.head_size;
  product.c = scores + first * shape.block;
  product.c_stride = shape.block;
  shape.method->multiply(product);
}

HeadSums::HeadSums(const AttentionShape& shape, const HeadOutput& head, int64_t begin, float* wide)
    : rows(wide), stride(shape.sum_stride()) {
  if (shape.dtype != DType::kF32) return;
  rows = static_cast<float*>(head.At(begin));
  stride = head.stride;
}

void ClearSums(const AttentionShape& shape, int64_t positions, const HeadSums& sums) {
  const bool is_wide = shape.dtype != DType::kF32;
  const int64_t rows = is_wide ? shape.block : positions;
  for (int64_t i = 0; i < rows; ++i) {
    std::fill_n(sums.rows + i * sums.stride, is_wide ? sums.stride : shape.head_size, 0.0f);
  }
}

void ScoreOperand::SumOverKeys(int64_t keys_begin, const float* terms, bool continues,
                               HeadSums sums) const {
  const int64_t keys = shape_.num_keys(keys_begin);
  shape_.method->pack_a({Row(keys_begin), shape_.block, false, queries_, keys}, packed_);
  Multiply(queries_, keys, terms, continues, sums);
}

void ScoreOperand::SumOverQueries(int64_t keys_begin, const float* terms, bool continues,
                                  HeadSums sums) const {
  const int64_t keys = shape_.num_keys(keys_begin);
  shape_.method->pack_a({Row(keys_begin), shape_.block, true, keys, queries_}, packed_);
  Multiply(keys, queries_, terms, continues, sums);
}

const void* ScoreOperand::Row(int64_t key) const {
  return static_cast<const char*>(data_) + key * shape_.block * SizeOf(shape_.dtype);
}

void ScoreOperand::Multiply(int64_t rows, int64_t depth, const float* terms, bool continues,
                            HeadSums sums) const {
  BlockProduct product;
  product.a = packed_;
  product.b = terms;
  product.rows = rows;
  product.columns = shape_.head_size;
  product.depth = depth;
  product.c = sums.rows;
  product.c_stride = sums.stride;
  product.continues = continues;
  shape_.method->multiply(product);
}

}  // namespace zg
