// The row passes of attention between the matrix products: softmax and its gradient down the rows
// of scores (attention_blocks.h), and the final scaling of a head's sums.
#pragma once

#include <cstdint>

#include "framework/kernels/cpu/attention_blocks.h"

namespace zg {

// Turns products with the queries from `begin` on into weights e^(scale * product - maximum), 0
// where a query does not see a key, and computes the maximum and the sum of each query's weights, with
// those of the sink (attention_options.h). `weights` are in the operands' dtype; in f32 they replace the
// products.
void SoftmaxDown(const AttentionShape& shape, int64_t begin, const float* products, float sink,
                 void* weights, float* maxima, float* sums);

// Per-query inputs of the gradient for a block of queries, one lane per query.
struct QueryLanes {
  const float* log_sum_exp;
  const float* dot;  // dout . out
};

// Turns products, and the products of values with dout, into weights and gradients of products;
// weights are written as by SoftmaxDown. With s = scale q k, w = e^(s - log_sum_exp): dproduct = w
// (dweight - sum over keys of w dweight) scale; that sum is dout . out.
void SoftmaxGradDown(const AttentionShape& shape, int64_t begin, const QueryLanes& queries,
                     const float* products, const float* dweights, void* weights, void* dproducts);

// dots[i] = a . b for the rows of a block from `begin` on.
void DotRows(const AttentionShape& shape, const HeadInput& a, const HeadInput& b, int64_t begin,
             float* dots);

// Writes the sums of a block as rows from `begin` on, in the operands' dtype, divided by `divisors`
// if these are not null.
void WriteRows(const AttentionShape& shape, const HeadSums& sums, const float* divisors,
               int64_t begin, const HeadOutput& head);

}  // namespace zg
