// Attention with separate queries, keys and values, and rotary positions. Shapes: q (B, Tq, heads
// D), k (B, Tk, key_heads D), v (B, Tk, key_heads E): heads of D or E channels side by side; the result
// is (B, Tq, heads E). Where E is not D, copies of the narrower ones are padded. Memory is linear in Tq
// and Tk.
#pragma once

#include <cstdint>
#include <vector>

#include "framework/nn/var.h"

namespace zg {

struct AttentionOptions {
  int64_t heads = 1;
  // If there are fewer key heads than heads, each serves heads / key_heads of them: grouped-query
  // attention (arXiv 2305.13245). 0: as many as heads.
  int64_t key_heads = 0;
  // A query sees the keys up to its own position; the last query is at the last key.
  bool causal = false;
  // A query sees only keys at a distance of less than this from its position. 0: all.
  int64_t window = 0;
  double scale = 0.0;  // of scores; 0: 1 / sqrt(D)
  // Scaled scores s become soft_cap tanh(s / soft_cap), before the bias, as in Gemma 2; 0: none.
  double soft_cap = 0.0;
  // i64 (B): the number of keys of each sequence; or i64 or bool (B, Tk): 0 or false where a key is
  // hidden (the opposite of PyTorch's key_padding_mask). A query that sees no key gets 0.
  Var mask = {};
  // Added to the scaled scores: (1 or B, 1 or heads, Tq, Tk), in the dtype of q. Differentiable. Or
  // bool of that shape, like PyTorch's attn_mask: false where a query does not see a key, without causal,
  // window and mask. 1 for Tq or Tk repeats it (a copy). To hide keys from a query that may then see none take bool, or -infinity: a
  // large negative number on a whole row makes that row's gradients too large.
  Var bias = {};
  // (heads), in the dtype of q: scores of a key without a value, which takes its part of each query's
  // weights, as in gpt-oss. Differentiable.
  Var sinks = {};
  // Probability with which attention weights are dropped in training; the others are divided by 1 -
  // dropout.
  double dropout = 0.0;
};

// softmax(scale q k^T + bias) v for each head. Option names follow
// torch.nn.functional.scaled_dot_product_attention where it has them; its operands are (B, heads,
// T, D).
Var attention(Var q, Var k, Var v, const AttentionOptions& options);

struct RotaryOptions {
  double theta = 10000.0;
  // Pairs are channels 2i and 2i + 1 of a head, as in the paper (arXiv 2104.09864), instead of i and
  // i + D/2, as in Llama and GPT-NeoX.
  bool interleaved = false;
  // Llama 3's scaling of frequencies for contexts beyond the original one; 1: none.
  double factor = 1.0;
  double low_frequency = 1.0;
  double high_frequency = 4.0;
  int64_t original_context = 8192;
  // The frequency of each pair, in angles for each position, instead of theta and the scaling.
  std::vector<double> frequencies = {};
  int64_t rotated = 0;  // the first channels of each head, which alone are rotated; 0: all
  double scale = 1.0;   // of cosines and sines: the attention factor of YaRN and LongRoPE
};

// YaRN (arXiv 2309.00071): frequencies for `factor` times the context. Those that turn fewer than
// slow_turns times within the original one are divided by the factor, those that turn more than
// fast_turns times stay, and in between the share changes linearly with the pair's index. `rounds`: both
// ends of that range are rounded away from it to whole pairs, as in the paper's code; gpt-oss does not.
// The scale is 0.1 ln(factor) + 1, which section 3.4 of the paper gives to queries and keys. `rotated` as
// above.
RotaryOptions yarn_rotary(int64_t rotated, double theta, double factor, int64_t original_context,
                          double fast_turns = 32.0, double slow_turns = 1.0, bool rounds = true);

// Rotates x (B, T, heads head_size) by its positions: 0, 1, ... along T, or from `positions`: i64
// (1) or (B), the position of each sequence's first element, or (B, T).
Var rotary(Var x, int64_t head_size, const RotaryOptions& options = {}, Var positions = {});

}  // namespace zg
