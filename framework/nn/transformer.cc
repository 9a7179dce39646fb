#include "framework/nn/transformer.h"

namespace zg::nn {
namespace {

Var FeedForward(Linear& linear1, Linear& linear2, const TransformerLayerOptions& options, Var x) {
  const Var hidden = linear1(x);
  const Var active = options.gelu ? gelu_erf(hidden) : relu(hidden);
  return dropout(linear2(dropout(active, options.dropout)), options.dropout);
}

// x plus the result of `part`, with a norm on one side.
template <typename Part>
Var Add(Var x, LayerNorm& norm, bool norm_first, const Part& part) {
  return norm_first ? x + part(norm(x)) : norm(x + part(x));
}

}  // namespace

TransformerEncoderLayer::TransformerEncoderLayer(const Module* parent, const std::string& name,
                                                 int64_t channels, int64_t heads,
                                                 const TransformerLayerOptions& options)
    : Module(parent, name),
      self_attn(this, "self_attn", channels, heads, options.dropout),
      linear1(this, "linear1", channels, options.hidden),
      linear2(this, "linear2", options.hidden, channels),
      norm1(this, "norm1", channels, options.epsilon),
      norm2(this, "norm2", channels, options.epsilon),
      options_(options) {}

Var TransformerEncoderLayer::operator()(Var x, const AttentionMasks& masks) {
  const Scope scope(*this);
  x = Add(x, norm1, options_.norm_first,
          [&](Var y) { return dropout(self_attn(y, masks), options_.dropout); });
  return Add(x, norm2, options_.norm_first,
             [&](Var y) { return FeedForward(linear1, linear2, options_, y); });
}

TransformerDecoderLayer::TransformerDecoderLayer(const Module* parent, const std::string& name,
                                                 int64_t channels, int64_t heads,
                                                 const TransformerLayerOptions& options)
    : Module(parent, name),
      self_attn(this, "self_attn", channels, heads, options.dropout),
      multihead_attn(this, "multihead_attn", channels, heads, options.dropout),
      linear1(this, "linear1", channels, options.hidden),
      linear2(this, "linear2", options.hidden, channels),
      norm1(this, "norm1", channels, options.epsilon),
      norm2(this, "norm2", channels, options.epsilon),
      norm3(this, "norm3", channels, options.epsilon),
      options_(options) {}

Var TransformerDecoderLayer::operator()(Var x, Var memory, const AttentionMasks& masks,
                                        const AttentionMasks& memory_masks) {
  const Scope scope(*this);
  x = Add(x, norm1, options_.norm_first,
          [&](Var y) { return dropout(self_attn(y, masks), options_.dropout); });
  x = Add(x, norm2, options_.norm_first, [&](Var y) {
    return dropout(multihead_attn(y, memory, memory, memory_masks), options_.dropout);
  });
  return Add(x, norm3, options_.norm_first,
             [&](Var y) { return FeedForward(linear1, linear2, options_, y); });
}

}  // namespace zg::nn
