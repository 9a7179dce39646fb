// Attention of separate operands with options, in doubles, one query of one head at a time.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "framework/base/random.h"
#include "tests/ops/op_case.h"

namespace zg::testing {

// A call with q (B, Tq, H D), k and v (B, Tk, K D) from input `q` on, in doubles.
class AttentionFormula {
 public:
  AttentionFormula(const ReferenceCall& call, int q)
      : call_(call),
        attributes_(call.attributes),
        q_(call.inputs[q].values),
        k_(call.inputs[q + 1].values),
        v_(call.inputs[q + 2].values),
        batch(call.inputs[q].shape.dim(0)),
        queries(call.inputs[q].shape.dim(1)),
        keys(call.inputs[q + 1].shape.dim(1)),
        heads(attributes_.Int("heads")),
        size(call.inputs[q].shape.dim(2) / heads),
        group(heads / attributes_.Int("key_heads")) {
    scale = attributes_.Float("scale");
    if (scale == 0.0) scale = 1.0 / std::sqrt(static_cast<double>(size));
    int next = q == 0 ? 3 : 6;
    if (attributes_.Bool("masked")) mask_ = &call.inputs[next++];
    if (attributes_.Bool("biased")) bias_ = &call.inputs[next++];
    if (attributes_.Bool("has_sinks")) sinks_ = &call.inputs[next++];
    if (!attributes_.Has("probability")) return;
    num_parts_ = attributes_.Int("parts");
    if (num_parts_ > 1) {
      part_ = &call.inputs[next];
      own_parts_ = part_->shape.num_elements();
    }
    key_ = RandomKey{call.step.seed};
    for (int64_t fold : {call.step.step, call.step.micro_batch, attributes_.Int("stream")}) {
      key_ = FoldIn(key_, static_cast<uint64_t>(fold));
    }
  }

  int64_t Q(int64_t b, int64_t h, int64_t i, int64_t c) const {
    return ((b * queries + i) * heads + h) * size + c;
  }
  int64_t K(int64_t b, int64_t h, int64_t j, int64_t c) const {
    return ((b * keys + j) * (heads / group) + h / group) * size + c;
  }
  int64_t Row(int64_t b, int64_t h, int64_t i) const { return (b * heads + h) * queries + i; }
  int64_t Bias(int64_t b, int64_t h, int64_t i, int64_t j) const {
    const Shape& shape = bias_->shape;
    const int64_t matrix = (shape.dim(0) == 1 ? 0 : b) * shape.dim(1) + (shape.dim(1) == 1 ? 0 : h);
    return (matrix * queries + i) * keys + j;
  }
  int64_t NumBias() const { return bias_->shape.num_elements(); }

  bool Sees(int64_t b, int64_t i, int64_t j) const {
    const int64_t position = i + keys - queries;
    const int64_t window = attributes_.Int("window");
    if (attributes_.Bool("causal") && j > position) return false;
    if (window > 0 && std::abs(position - j) >= window) return false;
    if (mask_ == nullptr) return true;
    if (mask_->shape.num_dims() == 1) return static_cast<double>(j) < mask_->values[b];
    return mask_->values[b * keys + j] != 0.0;
  }
  double Score(int64_t b, int64_t h, int64_t i, int64_t j) const {
    const double cap = attributes_.Float("soft_cap");
    const double scaled = ScaledProduct(b, h, i, j);
    const double capped = cap == 0.0 ? scaled : cap * std::tanh(scaled / cap);
    return capped + (bias_ == nullptr ? 0.0 : bias_->values[Bias(b, h, i, j)]);
  }
  // The derivative of the score by the product of query and key.
  double Slope(int64_t b, int64_t h, int64_t i, int64_t j) const {
    const double cap = attributes_.Float("soft_cap");
    if (cap == 0.0) return scale;
    const double share = std::tanh(ScaledProduct(b, h, i, j) / cap);
    return scale * (1.0 - share * share);
  }
  // What the head's sink adds to a sum of weights.
  double SinkWeight(int64_t h) const {
    return sinks_ == nullptr ? 0.0 : std::exp(sinks_->values[h]);
  }
  // For a call that has some parts of the heads.
  int64_t WholeHead(int64_t h) const {
    if (part_ == nullptr) return h;
    const int64_t in_part = heads / own_parts_;
    return static_cast<int64_t>(part_->values[h / in_part]) * in_part + h % in_part;
  }
  // 0 or 1 / (1 - probability).
  double Keep(int64_t b, int64_t h, int64_t i, int64_t j) const {
    if (!attributes_.Has("probability")) return 1.0;
    const double probability = attributes_.Float("probability");
    const int64_t row = (b * heads * num_parts_ / own_parts_ + WholeHead(h)) * queries + i;
    const bool drops = UniformAt(key_, row * keys + j) < probability;
    return drops ? 0.0 : 1.0 / (1.0 - probability);
  }

  template <typename F>
  void ForEachRow(const F& f) const {
    for (int64_t b = 0; b < batch; ++b) {
      for (int64_t h = 0; h < heads; ++h) {
        for (int64_t i = 0; i < queries; ++i) f(b, h, i);
      }
    }
  }

  // Calls f(b, h, query, key, weight, gradient of the score) for every key that a query sees.
  template <typename F>
  void ForEachGradient(const F& f) const {
    const std::vector<double>& dout = call_.inputs[0].values;
    const std::vector<double>& out = call_.inputs[4].values;
    ForEachRow([&](int64_t b, int64_t h, int64_t i) {
      double row_dot = 0.0;
      for (int64_t c = 0; c < size; ++c) row_dot += dout[Q(b, h, i, c)] * out[Q(b, h, i, c)];
      for (int64_t j = 0; j < keys; ++j) {
        if (!Sees(b, i, j)) continue;
        const double log_sum = call_.inputs[5].values[Row(b, h, i)];
        const double weight = std::exp(Score(b, h, i, j) - log_sum);
        double dweight = 0.0;
        for (int64_t c = 0; c < size; ++c) dweight += dout[Q(b, h, i, c)] * v_[K(b, h, j, c)];
        f(b, h, i, j, weight, weight * (dweight * Keep(b, h, i, j) - row_dot));
      }
    });
  }

 private:
  double ScaledProduct(int64_t b, int64_t h, int64_t i, int64_t j) const {
    double dot = 0.0;
    for (int64_t c = 0; c < size; ++c) dot += q_[Q(b, h, i, c)] * k_[K(b, h, j, c)];
    return dot * scale;
  }

  const ReferenceCall& call_;
  const ir::Attributes& attributes_;
  const std::vector<double>&q_, &k_, &v_;
  const ReferenceTensor* mask_ = nullptr;
  const ReferenceTensor* bias_ = nullptr;
  const ReferenceTensor* sinks_ = nullptr;
  const ReferenceTensor* part_ = nullptr;
  int64_t num_parts_ = 1, own_parts_ = 1;
  RandomKey key_;

 public:
  int64_t batch, queries, keys, heads, size, group;
  double scale;
};

}  // namespace zg::testing
