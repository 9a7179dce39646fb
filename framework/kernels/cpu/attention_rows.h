// The passes of attention over rows, between the matrix products: softmax and its gradient down the
// rows of scores (attention_blocks.h), and what becomes of a head's rows of sums.
#pragma once

#include <cstdint>

#include "framework/kernels/cpu/attention_blocks.h"

namespace zg {

// From products with the queries from `begin` on to weights e^(scale * product - maximum), 0 where
// a query does not see a key, and the maximum and the sum of each query's weights. `weights` are in
// the operands' dtype, in f32 where the products lie.
void SoftmaxDown(const AttentionShape& shape, int64_t begin, const float* products, void* weights,
                 float* maxima, float* sums);

// What the gradient knows of a block of queries, a lane for each.
struct QueryLanes {
  const float* log_sum_exp;
  const float* dot;  // dout . out
};

// From products, and the products of values with dout, to weights and to the gradients of products,
// as SoftmaxDown writes weights. With s = scale q k, w = e^(s - log_sum_exp):
// dproduct = w (dweight - sum over keys of w dweight) scale; that sum is dout . out.
void SoftmaxGradDown(const AttentionShape& shape, int64_t begin, const QueryLanes& queries,
                     const float* products, const float* dweights, void* weights, void* dproducts);

// dots[i] = a . b of the rows from `begin` on, of a block.
void DotRows(const AttentionShape& shape, const HeadInput& a, const HeadInput& b, int64_t begin,
             float* dots);

// Rows of sums, as those of a block from `begin` on in the operands' dtype, divided by `divisors`
// if these are not null.
void WriteRows(const AttentionShape& shape, const HeadSums& sums, const float* divisors,
               int64_t begin, const HeadOutput& head);

}  // namespace zg
