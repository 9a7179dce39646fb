// AttentionCall: the sizes, options and operands of a call of attention or of one of its gradients
// (framework/ops/attention.cc), packed or not, for the kernels of both devices.
#pragma once

#include <fmt/core.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

#include "framework/kernels/kernel.h"
#include "framework/kernels/parted_dim.h"

namespace zg {

// The score of a key that a query does not see, and the logarithm of the sum for a query that sees
// no key. It is finite, so that it does not count as an anomaly, and low enough that weights become
// 0.
inline constexpr float kHiddenScore = -std::numeric_limits<float>::max();
inline constexpr float kNoKeysLogSumExp = std::numeric_limits<float>::max();

// The layout of the heads of q, k, v or out in a tensor, in elements.
struct AttentionRows {
  int64_t positions;
  int64_t stride;     // from one position to the next
  int64_t first = 0;  // channel of head 0
};

struct AttentionCall {
  int64_t batch = 0;
  int64_t queries = 0;
  int64_t keys = 0;
  int64_t heads = 0;
  int64_t key_heads = 0;
  int64_t head_size = 0;
  DType dtype = DType::kF32;
  bool causal = false;
  int64_t window = 0;  // 0: none
  float scale = 0.0f;
  float soft_cap = 0.0f;               // 0: none
  AttentionRows q{}, k{}, v{}, out{};  // and their gradients
  // Indices of inputs; for the parts of q, k and v also indices of the gradient's outputs.
  int q_input = 0;
  int part_step = 0;  // k is input q_input + part_step, v twice that
  int mask_input = -1;
  int bias_input = -1;
  int sinks_input = -1;
  bool mask_counts = false;     // the mask has one number per sequence
  int64_t bias_row_stride = 0;  // from one query to the next
  int64_t bias_batch_stride = 0;
  int64_t bias_head_stride = 0;
  double dropout = 0.0;
  uint64_t stream = 0;
  PartedDim parted_heads = {};  // over which dropout counts
  int part_input = -1;

  // A forward op, or one that takes dout first.
  AttentionCall(const ir::OpCall& call, bool is_gradient);

  int64_t group() const { return heads / key_heads; }
  // The position of query 0 among the keys.
  int64_t offset() const { return keys - queries; }
  // No option except causality, and every query sees key 0.
  bool is_plain() const {
    return mask_input < 0 && bias_input < 0 && sinks_input < 0 && window == 0 && soft_cap == 0.0f &&
           dropout == 0.0 && (!causal || keys >= queries);
  }
};

inline std::string NumKeysOutside(int64_t count, int64_t keys) {
  return fmt::format("attention: the mask gives a sequence {} keys, expected 0 to {}", count, keys);
}

inline AttentionCall::AttentionCall(const ir::OpCall& call, bool is_gradient)
    : q_input(is_gradient ? 1 : 0) {
  const ir::Attributes& attributes = call.attributes;
  const bool is_packed = !attributes.Has("key_heads");
  const Shape& shape = call.inputs[q_input].shape;
  batch = shape.dim(0);
  queries = shape.dim(1);
  dtype = call.inputs[q_input].dtype;
  heads = attributes.Int("heads");
  causal = attributes.Bool("causal");
  const int64_t channels = shape.dim(2) / (is_packed ? 3 : 1);
  head_size = channels / heads;
  scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(head_size)));
  out = {queries, channels};
  if (is_packed) {
    keys = queries;
    key_heads = heads;
    q = {queries, 3 * channels, 0};
    k = {queries, 3 * channels, channels};
    v = {queries, 3 * channels, 2 * channels};
    return;
  }
  part_step = 1;
  keys = call.inputs[q_input + 1].shape.dim(1);
  key_heads = attributes.Int("key_heads");
  q = out;
  k = v = {keys, key_heads * head_size};
  window = attributes.Int("window");
  if (attributes.Float("scale") != 0.0) scale = static_cast<float>(attributes.Float("scale"));
  soft_cap = static_cast<float>(attributes.Float("soft_cap"));
  int next = is_gradient ? 6 : 3;
  if (attributes.Bool("masked")) {
    mask_input = next++;
    mask_counts = call.inputs[mask_input].shape.num_dims() == 1;
  }
  if (attributes.Bool("biased")) {
    bias_input = next++;
    const Shape& bias = call.inputs[bias_input].shape;
    bias_row_stride = keys;
    bias_head_stride = bias.dim(1) == 1 ? 0 : queries * keys;
    bias_batch_stride = bias.dim(0) == 1 ? 0 : bias.dim(1) * queries * keys;
  }
  if (attributes.Bool("has_sinks")) sinks_input = next++;
  if (attributes.Has("probability")) {
    dropout = attributes.Float("probability");
    stream = static_cast<uint64_t>(attributes.Int("stream"));
    parted_heads = PartedDim::Of(call, next, heads);
    if (parted_heads.num_parts > 1) part_input = next;
  }
}

}  // namespace zg
