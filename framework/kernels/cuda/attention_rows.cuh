// Where the heads of attention's operands lie, and which keys a query sees. Blocks have a head (x)
// and a tile of positions (y).
#pragma once

#include "framework/kernels/cuda/attention_shape.h"
#include "framework/kernels/cuda/kernel_util.h"

namespace zg::cuda {

// Where one of q, k, v, dout, out begins for a head, and how far its positions lie apart.
template <typename T>
struct HeadRows {
  T* begin;
  int64_t stride;
};

template <typename T>
__device__ inline HeadRows<T> RowsOf(T* tensor, const AttentionShape& shape, int parts, int part) {
  const int64_t batch = blockIdx.x / shape.heads;
  const int64_t head = blockIdx.x % shape.heads;
  const int64_t stride = parts * shape.channels;
  return {tensor + batch * shape.time * stride + part * shape.channels + head * shape.head_size,
          stride};
}

__device__ inline bool Sees(const AttentionShape& shape, int64_t query, int64_t key) {
  return key < shape.time && (!shape.causal || key <= query);
}

// The keys that a tile of queries sees are [0, end).
template <int kTile>
__device__ inline int64_t EndOfKeys(const AttentionShape& shape, int64_t first_query) {
  const int64_t end = first_query + kTile;
  return shape.causal && end < shape.time ? end : shape.time;
}

}  // namespace zg::cuda
