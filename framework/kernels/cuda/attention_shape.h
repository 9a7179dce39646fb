// What the attention kernels know of their operands.
#pragma once

#include <cmath>
#include <cstdint>

#include "framework/kernels/kernel.h"

namespace zg::cuda {

// qkv (B, T, 3 C) holds q, k and v of all heads side by side; the output and its gradient are
// (B, T, C), log_sum_exp is (B, heads, T).
struct AttentionShape {
  int64_t batch;
  int64_t time;
  int64_t channels;
  int64_t heads;
  int64_t head_size;
  bool causal;
  float scale;

  AttentionShape(const TensorType& qkv, const ir::Attributes& attributes)
      : batch(qkv.shape.dim(0)),
        time(qkv.shape.dim(1)),
        channels(qkv.shape.dim(2) / 3),
        heads(attributes.Int("heads")),
        head_size(channels / heads),
        causal(attributes.Bool("causal")),
        scale(static_cast<float>(1.0 / std::sqrt(static_cast<double>(head_size)))) {}
};

template <typename T>
struct AttentionArrays {
  const T* qkv;
  T* out;
  float* log_sum_exp;
};

template <typename T>
struct AttentionGradArrays {
  const T* dout;
  const T* qkv;
  const T* out;
  const float* log_sum_exp;
  T* dqkv;
  float* dot;  // of dout and out, by (batch, head, position)
};

}  // namespace zg::cuda
