// Functions of Vars that look for extreme elements. Names and meaning are those of PyTorch: `dims` may
// be negative, counted from the end; none are all of them. With `keep_dims` they stay, of size 1.
//
// Of equal elements the first counts, in the order of memory: it has the index, and the whole gradient
// (as of PyTorch's max and topk along one dim; its amax shares it). NaN is more extreme than any
// number, on both sides.
#pragma once

#include "framework/nn/shapes.h"
#include "framework/nn/var.h"

namespace zg {

Var max(Var x, const Dims& dims = {}, bool keep_dims = false);
Var min(Var x, const Dims& dims = {}, bool keep_dims = false);

// i64: where along one dim. They have no gradient.
Var argmax(Var x, int64_t dim, bool keep_dims = false);
Var argmin(Var x, int64_t dim, bool keep_dims = false);

// The k largest along one dim, or smallest, in their order, and i64 indices; k = size of the dim
// sorts.
struct TopK {
  Var values;
  Var indices;
};
TopK top_k(Var x, int64_t k, int64_t dim = -1, bool largest = true);

// Of conditions: whether one, or each of them, holds.
Var any(Var x, const Dims& dims = {}, bool keep_dims = false);
Var all(Var x, const Dims& dims = {}, bool keep_dims = false);

// ln(sum of e^x); stable: relative to the largest element.
Var logsumexp(Var x, const Dims& dims, bool keep_dims = false);

// (sum of |x|^p)^(1/p); of an infinite p the largest or the smallest |x|, of 0 the number of elements
// that are not 0 (torch.linalg.vector_norm).
Var vector_norm(Var x, double p, const Dims& dims = {}, bool keep_dims = false);

}  // namespace zg
