// TransformerEncoderLayer and TransformerDecoderLayer of PyTorch (batch_first), with its
// parameters' names: attention and a feed-forward part, each added to its input and normalised
// after that, or before with `norm_first`. SwiGLU: the feed-forward part of Llama. Shapes: x (B, T,
// C), memory (B, Tm, C).
#pragma once

#include <string>

#include "framework/nn/dropout.h"
#include "framework/nn/layer_norm.h"
#include "framework/nn/multihead_attention.h"

namespace zg::nn {

struct TransformerLayerOptions {
  int64_t hidden = 2048;
  double dropout = 0.1;  // applied to attention weights, hidden channels and residual branches
  bool gelu = false;     // the exact one; else ReLU
  bool norm_first = false;
  double epsilon = 1e-5;
};

class TransformerEncoderLayer : public Module {
 public:
  TransformerEncoderLayer(const Module* parent, const std::string& name, int64_t channels,
                          int64_t heads, const TransformerLayerOptions& options = {});
  Var operator()(Var x, const AttentionMasks& masks = {});

  MultiheadAttention self_attn;
  Linear linear1;
  Linear linear2;
  LayerNorm norm1;
  LayerNorm norm2;

 protected:
  Var forward(Var x) override { return (*this)(x, AttentionMasks{}); }

 private:
  TransformerLayerOptions options_;
};

class TransformerDecoderLayer : public Module {
 public:
  TransformerDecoderLayer(const Module* parent, const std::string& name, int64_t channels,
                          int64_t heads, const TransformerLayerOptions& options = {});
  // `masks` apply to the attention of x to itself, usually causal; `memory_masks` to the attention
  // of x to the memory.
  Var operator()(Var x, Var memory, const AttentionMasks& masks = {},
                 const AttentionMasks& memory_masks = {});

  MultiheadAttention self_attn;
  MultiheadAttention multihead_attn;
  Linear linear1;
  Linear linear2;
  LayerNorm norm1;
  LayerNorm norm2;
  LayerNorm norm3;

 private:
  TransformerLayerOptions options_;
};

// down_proj(silu(gate_proj(x)) up_proj(x)), without biases (Shazeer, arXiv 2002.05202).
class SwiGLU : public Module {
 public:
  SwiGLU(const Module* parent, const std::string& name, int64_t channels, int64_t hidden,
         const LinearOptions& options = {false})
      : Module(parent, name),
        gate_proj(this, "gate_proj", channels, hidden, options),
        up_proj(this, "up_proj", channels, hidden, options),
        down_proj(this, "down_proj", hidden, channels, options) {}

  Var forward(Var x) override {
    const Var gate = silu(gate_proj(x));
    return down_proj(gate * up_proj(x));
  }

  Linear gate_proj;
  Linear up_proj;
  Linear down_proj;
};

}  // namespace zg::nn
