// Attention of queries to keys and values that stand apart, and rotary positions.
// Shapes: q (B, Tq, heads D), k and v (B, Tk, key_heads D): heads of D channels side by side; the
// result is as q. Memory is linear in Tq and Tk.
#pragma once

#include <cstdint>

#include "framework/nn/var.h"

namespace zg {

struct AttentionOptions {
  int64_t heads = 1;
  // Fewer than heads, of which each then serves heads / key_heads: grouped-query attention (arXiv
  // 2305.13245). 0: as many.
  int64_t key_heads = 0;
  // A query sees the keys up to its own position; the last query stands at the last key.
  bool causal = false;
  // A query sees only keys less than so far from its position. 0: all.
  int64_t window = 0;
  double scale = 0.0;  // of scores; 0: 1 / sqrt(D)
  // i64 (B): how many keys each sequence has; or i64 or bool (B, Tk): 0, false where a key is hidden
  // (which PyTorch's key_padding_mask has the other way round). A query that sees no key gets 0.
  Var mask = {};
  // Added to the scaled scores: (1 or B, 1 or heads, Tq, Tk), of the dtype of q. Differentiable. Or
  // bool of that shape, as PyTorch's attn_mask: false where a query does not see a key.
  Var bias = {};
  // Of weights, while training; the others are divided by 1 - it.
  double dropout = 0.0;
};

// softmax(scale q k^T + bias) v of each head. Names of options as far as they are there: those of
// torch.nn.functional.scaled_dot_product_attention, whose operands are (B, heads, T, D).
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
};

// x (B, T, heads head_size) turned by its positions: 0, 1, ... along T, or from `positions`: i64 (1)
// or (B), that of each sequence's first element, or (B, T).
Var rotary(Var x, int64_t head_size, const RotaryOptions& options = {}, Var positions = {});

}  // namespace zg
