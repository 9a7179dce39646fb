// The building blocks of attention and its gradient: blocks of positions of one head, packed for
// matrix products (gemm_method.h), and the scores of all keys with a block of queries.
//
// Scores are transposed, with a row per key and a lane per query, so that a softmax runs down the
// rows without sums across lanes. Blocks of keys are as large as those of queries, so that
// causality and windows skip whole blocks.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "framework/ir/op_def.h"
#include "framework/kernels/attention_call.h"
#include "framework/kernels/cpu/gemm_method.h"

namespace zg {

// A softmax processes this many queries at a time; blocks consist of whole such columns.
inline constexpr int64_t kScoreColumn = 32;

struct AttentionShape : AttentionCall {
  const GemmMethod* method;  // outlives this
  // Positions of a block; the last block of a head may have fewer.
  int64_t block;

  AttentionShape(const ir::OpCall& call, bool is_gradient, const GemmMethod& products);

  int64_t num_key_blocks() const { return CeilDiv(keys, block); }
  int64_t num_queries(int64_t begin) const { return std::min(block, queries - begin); }
  int64_t num_keys(int64_t begin) const { return std::min(block, keys - begin); }
  // The keys that the queries of the block from `begin` on see are in whole blocks [first_key,
  // end_key), at least one.
  int64_t first_key(int64_t begin) const;
  int64_t end_key(int64_t begin) const;

  // In floats: the sums of a block, the output of PackRows and its siblings, and the scores of all
  // keys with a block of queries, in f32 and in 16 bits.
  int64_t sum_stride() const { return RoundUp(head_size, method->column_unit); }
  int64_t sums_size() const { return dtype == DType::kF32 ? 0 : block * sum_stride(); }
  int64_t rows_size() const { return method->PackedASize(block, head_size); }
  int64_t columns_size() const { return method->PackedBSize(block, head_size); }
  int64_t terms_size() const { return method->PackedBSize(head_size, block); }
  int64_t weights_size() const { return method->PackedASize(block, block); }
  int64_t scores_size() const { return num_key_blocks() * block * block; }
};

// One head of q, k, v or an output: a row for each position.
template <typename Void>
struct HeadRows {
  Void* data;
  int64_t positions;
  int64_t stride;  // elements
  int64_t row_bytes;

  HeadRows(const AttentionShape& shape, Void* tensor, const AttentionRows& rows, int64_t batch,
           int64_t head)
      : data(tensor),
        positions(rows.positions),
        stride(rows.stride),
        row_bytes(stride * SizeOf(shape.dtype)) {
    const int64_t channel = rows.first + head * shape.head_size;
    data = static_cast<Byte*>(At(batch * rows.positions)) + channel * SizeOf(shape.dtype);
  }
  Void* At(int64_t position) const { return static_cast<Byte*>(data) + position * row_bytes; }

 private:
  using Byte = std::conditional_t<std::is_const_v<Void>, const char, char>;
};
using HeadInput = HeadRows<const void>;
using HeadOutput = HeadRows<void>;

// Packs the block from `begin` on as an operand: its positions are the rows or columns of a product
// over channels, or the terms of a product over positions.
void PackRows(const AttentionShape& shape, const HeadInput& head, int64_t begin, float* packed);
void PackColumns(const AttentionShape& shape, const HeadInput& head, int64_t begin, float* packed);
void PackTerms(const AttentionShape& shape, const HeadInput& head, int64_t begin, float* packed);

// scores[key][query] = sum over channels, for the queries from `begin` on and the blocks of keys that
// they see.
void MultiplyKeys(const AttentionShape& shape, int64_t begin, const float* keys,
                  const float* queries, float* scores);

// HeadSums of a block of positions, rows of head_size: in f32 they are accumulated in the head
// itself.
struct HeadSums {
  float* rows;
  int64_t stride;

  // `wide` has shape.sums_size() floats.
  HeadSums(const AttentionShape& shape, const HeadOutput& head, int64_t begin, float* wide);
};

// Sets sums to zero, before others are added.
void ClearSums(const AttentionShape& shape, int64_t positions, const HeadSums& sums);

// Scores of keys and a block of queries, in the operands' dtype, as an operand of a product with
// blocks of positions.
class ScoreOperand {
 public:
  ScoreOperand(const AttentionShape& shape, int64_t begin, const void* scores, float* packed)
      : shape_(shape), queries_(shape.num_queries(begin)), data_(scores), packed_(packed) {}

  // sums[query] = or += sum over the block of keys of score x terms[key].
  void SumOverKeys(int64_t keys_begin, const float* terms, bool continues, HeadSums sums) const;
  // sums[key] = or += sum over the queries of score x terms[query], for the block of keys.
  void SumOverQueries(int64_t keys_begin, const float* terms, bool continues, HeadSums sums) const;

 private:
  const void* Row(int64_t key) const;
  void Multiply(int64_t rows, int64_t depth, const float* terms, bool continues,
                HeadSums sums) const;

  const AttentionShape& shape_;
  int64_t queries_;
  const void* data_;
  float* packed_;
};

}  // namespace zg
