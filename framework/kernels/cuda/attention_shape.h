// The operands of attention as its kernels see them.
#pragma once

#include <algorithm>
#include <cstdint>

#include "framework/kernels/attention_call.h"

namespace zg::cuda {

// AttentionCall for kernels: positions and heads are in 32 bits, which MakeAttention checks.
struct AttentionShape {
  int64_t batch;
  int queries, keys, heads, key_heads;
  int group;  // query heads per key head
  int head_size;
  int offset;  // position of query 0 among the keys
  bool causal;
  bool is_plain;  // without the options below
  float scale;
  float soft_cap;  // 0: none
  AttentionRows q, k, v, out;
  int window;
  bool mask_counts;
  int64_t bias_batch_stride, bias_head_stride;
  uint32_t drop_threshold;  // 0: no dropout
  float keep_scale;
  uint64_t stream;
  PartedDim parted_heads;

  // Longer than every distance, and small enough to be added to positions.
  static constexpr int64_t kLongestWindow = int64_t{1} << 30;

  explicit AttentionShape(const AttentionCall& call)
      : batch(call.batch),
        queries(static_cast<int>(call.queries)),
        keys(static_cast<int>(call.keys)),
        heads(static_cast<int>(call.heads)),
        key_heads(static_cast<int>(call.key_heads)),
        group(static_cast<int>(call.group())),
        head_size(static_cast<int>(call.head_size)),
        offset(static_cast<int>(call.offset())),
        causal(call.causal),
        is_plain(call.is_plain()),
        scale(call.scale),
        soft_cap(call.soft_cap),
        q(call.q),
        k(call.k),
        v(call.v),
        out(call.out),
        window(static_cast<int>(std::min(call.window, kLongestWindow))),
        mask_counts(call.mask_counts),
        bias_batch_stride(call.bias_batch_stride),
        bias_head_stride(call.bias_head_stride),
        drop_threshold(static_cast<uint32_t>(call.dropout * 0x1p24)),
        keep_scale(static_cast<float>(1.0 / (1.0 - call.dropout))),
        stream(call.stream),
        parted_heads(call.parted_heads) {}
};

// Null if the operand is absent.
template <typename T>
struct OptionOperands {
  const int64_t* mask;
  const T* bias;
  const T* sinks;
  const int64_t* part;
  const StepContext* step;
};

template <typename T>
struct AttentionArrays {
  const T* q;
  const T* k;
  const T* v;
  OptionOperands<T> options;
  T* out;
  float* log_sum_exp;
};

template <typename T>
struct AttentionGradArrays {
  const T* dout;
  const T* q;
  const T* k;
  const T* v;
  const T* out;
  const float* log_sum_exp;
  OptionOperands<T> options;
  T* dq;
  T* dk;
  T* dv;
  float* dot;  // dot products of dout and out, by (batch, head, query)
};

}  // namespace zg::cuda
