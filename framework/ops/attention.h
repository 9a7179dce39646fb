// Scaled dot-product attention over packed queries, keys and values (arXiv 1706.03762) and its
// gradient. Shapes: qkv (B, T, 3C) = [q | k | v], each with its heads side by side; out (B, T, C);
// log_sum_exp (B, heads, T) in f32: of each query's scores, from which the gradient computes the
// weights again.
#pragma once

namespace zg {

namespace ir {
class OpRegistry;
}

void RegisterAttentionOps(ir::OpRegistry& registry);

}  // namespace zg
