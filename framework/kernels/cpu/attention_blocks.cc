#include "framework/kernels/cpu/attention_blocks.h"

#include <algorithm>
#include <cmath>

namespace zg {
namespace {

// Products over positions are of two units of depth, if a unit is more than one: with less their
// sums are loaded and stored more often than added to.
int64_t PositionsOfBlock(const GemmMethod& method) {
  return RoundUp(std::max(kScoreColumn, 2 * method.depth_unit), kScoreColumn);
}

}  // namespace

AttentionShape::AttentionShape(const TensorType& qkv, const ir::Attributes& attributes,
                               const GemmMethod& products)
    : batch(qkv.shape.dim(0)),
      time(qkv.shape.dim(1)),
      channels(qkv.shape.dim(2) / 3),
      heads(attributes.Int("heads")),
      head_size(channels / heads),
      causal(attributes.Bool("causal")),
      scale(static_cast<float>(1.0 / std::sqrt(static_cast<double>(head_size)))),
      dtype(qkv.dtype),
      method(&products),
      block(PositionsOfBlock(products)) {}

void PackRows(const AttentionShape& shape, const HeadInput& head, int64_t begin, float* packed) {
  shape.method->pack_a(
      {head.At(begin), head.stride, true, shape.block_size(begin), shape.head_size}, packed);
}

void PackColumns(const AttentionShape& shape, const HeadInput& head, int64_t begin, float* packed) {
  shape.method->pack_b(
      {head.At(begin), head.stride, true, shape.block_size(begin), shape.head_size}, packed);
}

void PackTerms(const AttentionShape& shape, const HeadInput& head, int64_t begin, float* packed) {
  shape.method->pack_b(
      {head.At(begin), head.stride, false, shape.head_size, shape.block_size(begin)}, packed);
}

void MultiplyKeys(const AttentionShape& shape, int64_t begin, const float* keys,
                  const float* queries, float* scores) {
  BlockProduct product;
  product.a = keys;
  product.b = queries;
  product.rows = shape.keys_seen(begin);
  product.columns = shape.block_size(begin);
  product.depth = shape.head_size;
  product.c = scores;
  product.c_stride = shape.block;
  shape.method->multiply(product);
}

HeadSums::HeadSums(const AttentionShape& shape, const HeadOutput& head, int64_t begin, float* wide)
    : rows(wide), stride(shape.sum_stride()) {
  if (shape.dtype != DType::kF32) return;
  rows = static_cast<float*>(head.At(begin));
  stride = head.stride;
}

void ScoreOperand::SumOverKeys(int64_t keys_begin, const float* terms, bool continues,
                               HeadSums sums) const {
  const int64_t keys = shape_.block_size(keys_begin);
  shape_.method->pack_a({Row(keys_begin), shape_.block, false, queries_, keys}, packed_);
  Multiply(queries_, keys, terms, continues, sums);
}

void ScoreOperand::SumOverQueries(int64_t keys_begin, const float* terms, bool continues,
                                  HeadSums sums) const {
  const int64_t keys = shape_.block_size(keys_begin);
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
