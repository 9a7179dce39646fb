// The layout of the heads of attention's operands, and which keys a query sees. A block processes a
// head of queries or of keys (x, in a group of heads: z) and a tile of positions (y).
#pragma once

#include "framework/kernels/cuda/attention_shape.h"
#include "framework/kernels/cuda/kernel_util.h"

namespace zg::cuda {

struct Head {
  int64_t batch;
  int64_t head;
};

// The sequence and the head, one of `heads`. If the groups do not divide all heads, the sequence
// may be past the last one: such a block has nothing to do.
__device__ inline Head HeadOfBlock(int heads) {
  const unsigned index = blockIdx.z * gridDim.x + blockIdx.x;
  const auto heads_of_sequence = static_cast<unsigned>(heads);
  return {index / heads_of_sequence, index % heads_of_sequence};
}

// The first element of q, k, v, dout or out for a head, and the stride of its positions.
template <typename T>
struct HeadRows {
  T* begin;
  int positions;
  int64_t stride;
};

template <typename T>
__device__ inline HeadRows<T> RowsOf(T* tensor, const AttentionRows& rows,
                                     const AttentionShape& shape, int64_t batch, int64_t head) {
  return {tensor + batch * rows.positions * rows.stride + rows.first + head * shape.head_size,
          static_cast<int>(rows.positions), rows.stride};
}

// For a head of queries, and for the key head that it uses.
template <typename T>
__device__ inline HeadRows<T> QueryRows(T* tensor, const AttentionRows& rows,
                                        const AttentionShape& shape, const Head& at) {
  return RowsOf(tensor, rows, shape, at.batch, at.head);
}
template <typename T>
__device__ inline HeadRows<T> KeyRows(T* tensor, const AttentionRows& rows,
                                      const AttentionShape& shape, const Head& at) {
  return RowsOf(tensor, rows, shape, at.batch, at.head / shape.group);
}

// The index of a head's first query in (batch, head, query).
__device__ inline int64_t FirstRow(const AttentionShape& shape, const Head& at) {
  return (at.batch * shape.heads + at.head) * shape.queries;
}

// Ignores options.
__device__ inline bool Sees(const AttentionShape& shape, int64_t query, int64_t key) {
  return key < shape.keys && (!shape.causal || key <= query + shape.offset);
}

__device__ inline int Clamped(int value, int end) {
  return value < 0 ? 0 : value < end ? value : end;
}

// The keys that a tile of queries sees are in [begin, end), which begins at a whole tile.
template <int kTile>
__device__ inline int BeginOfKeys(const AttentionShape& shape, int first_query) {
  if (shape.window == 0) return 0;
  return Clamped(first_query + shape.offset - shape.window + 1, shape.keys) / kTile * kTile;
}
template <int kTile>
__device__ inline int EndOfKeys(const AttentionShape& shape, int first_query) {
  const int end = first_query + kTile + shape.offset;
  if (shape.causal) return Clamped(end, shape.keys);
  return shape.window == 0 ? shape.keys : Clamped(end + shape.window - 1, shape.keys);
}

// The queries that see a tile of keys are in [begin, end).
__device__ inline int BeginOfQueries(const AttentionShape& shape, int first_key) {
  const int begin = first_key - shape.offset;
  if (shape.causal) return Clamped(begin, shape.queries);
  return shape.window == 0 ? 0 : Clamped(begin - shape.window + 1, shape.queries);
}
template <int kTile>
__device__ inline int EndOfQueries(const AttentionShape& shape, int first_key) {
  if (shape.window == 0) return shape.queries;
  return Clamped(first_key + kTile - 1 - shape.offset + shape.window, shape.queries);
}

}  // namespace zg::cuda
