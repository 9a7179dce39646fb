#include "framework/nn/multihead_attention.h"

#include <cmath>
#include <vector>

#include "framework/nn/functions.h"
#include "framework/nn/shapes.h"

namespace zg::nn {

// Xavier's uniform bound for in_proj_weight, and zeros for the biases, as in PyTorch.
MultiheadAttention::MultiheadAttention(const Module* parent, const std::string& name,
                                       int64_t channels, int64_t heads, double dropout,
                                       bool has_bias)
    : Module(parent, name),
      in_proj_weight(this, "in_proj_weight", {3 * channels, channels},
                     Initializer::Uniform(std::sqrt(1.5 / static_cast<double>(channels)))),
      out_proj(this, "out_proj", channels, channels,
               {has_bias, std::nullopt, Initializer::Zeros()}),
      channels_(channels),
      heads_(heads),
      dropout_(dropout) {
  if (has_bias) {
    in_proj_bias.emplace(this, "in_proj_bias", Shape{3 * channels}, Initializer::Zeros());
  }
}

// Parts [part, part + num_parts) of q, k and v.
Var MultiheadAttention::Project(Var x, int64_t part, int64_t num_parts) {
  const auto rows = [&](Var parameter) {
    if (num_parts == 3) return parameter;
    return slice(parameter, 0, part * channels_, (part + num_parts) * channels_);
  };
  const Var weight = rows(in_proj_weight);
  if (!in_proj_bias.has_value()) return linear(x, weight);
  return linear(x, weight, rows(*in_proj_bias));
}

Var MultiheadAttention::Attend(Var q, Var k, Var v, const AttentionMasks& masks) {
  AttentionOptions options;
  options.heads = heads_;
  options.causal = masks.causal;
  options.mask = masks.mask;
  options.bias = masks.bias;
  options.dropout = dropout_;
  return out_proj(attention(q, k, v, options));
}

Var MultiheadAttention::operator()(Var query, Var key, Var value, const AttentionMasks& masks) {
  const Scope scope(*this);
  const Var q = Project(query, 0, 1);
  const Var k = Project(key, 1, 1);
  const Var v = Project(value, 2, 1);
  return Attend(q, k, v, masks);
}

Var MultiheadAttention::operator()(Var x, const AttentionMasks& masks) {
  const Scope scope(*this);
  const Var qkv = Project(x, 0, 3);
  if (dropout_ == 0.0 && masks.mask.empty() && masks.bias.empty()) {
    return out_proj(attention(qkv, heads_, masks.causal));
  }
  const std::vector<Var> parts = split(qkv, channels_, -1);
  if (parts.size() != 3) return Var();
  return Attend(parts[0], parts[1], parts[2], masks);
}

}  // namespace zg::nn
