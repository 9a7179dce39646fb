// The common rules of the attention ops (attention.cc, attention_options.cc): their sizes, the
// placements that give each rank some of the heads, and the operations that a mask leaves.
#pragma once

#include <cstdint>

#include "framework/ir/builder.h"
#include "framework/ir/op_def.h"

namespace zg::attention_rules {

inline constexpr char kNoSecondDerivative[] =
    "second derivatives are not supported; matmul and softmax in place of attention have them";

// Each rank has some of the heads.
inline const Sbp kHeads = Sbp::S(2);        // of (B, T, H D)
inline const Sbp kRowsOfHeads = Sbp::S(1);  // of (B, H, T)

struct Sizes {
  int64_t batch = 0;
  int64_t queries = 0;
  int64_t keys = 0;
  int64_t channels = 0;  // of all heads of q
  int64_t heads = 0;
};

Shape RowsOf(const Sizes& sizes);  // (B, H, Tq)

// The number of pairs of a query and a key that `causal` and `window` leave, in one head.
int64_t NumPairs(const Sizes& sizes, bool causal, int64_t window);

// The operations of `products` matrix products of the size of queries times keys, over the pairs
// that the mask leaves, and of `per_score` other operations for each score.
int64_t Flops(const Sizes& sizes, int64_t pairs, int64_t products, int64_t per_score);

// Sets the attribute of the rank's call, a number of heads, to the number that the rank has, which
// follows from the channels of `input`.
void SetOwnHeads(const char* attribute, const ir::OpCall& logical, size_t input, ir::OpCall* local);

// Error: the attribute `soft_cap` is not a finite number of at least 0.
Status CheckSoftCap(const ir::OpCall& call);

// The gradient of a forward op's input `sinks` (H): each is a score whose key has a value of zeros, so
// with delta = dout . out of a query and head, dsinks[h] = - the sum of e^(sinks[h] - log_sum_exp) delta.
ir::Value* GradientOfSinks(ir::GradientContext& context, int sinks);

}  // namespace zg::attention_rules
