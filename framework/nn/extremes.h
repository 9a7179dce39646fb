// Functions of Vars that find extreme elements. Names and meaning are PyTorch's: `dims`, one or a list,
// may be negative, counted from the end; an empty list means all of them. With `keep_dims` they stay, with
// size 1.
//
// Among equal elements the first one counts, in memory order: it gets the index and the whole
// gradient (like PyTorch's max and topk along one dim; PyTorch's amax shares it). NaN is more
// extreme than any number, for both maxima and minima. All but quantile, logarithms and norms take i64,
// too, below 2^44 in magnitude.
#pragma once

#include "framework/nn/shapes.h"
#include "framework/nn/var.h"

namespace zg {

Var max(Var x, const ReducedDims& dims = {}, bool keep_dims = false);
Var min(Var x, const ReducedDims& dims = {}, bool keep_dims = false);

// i64: the index along one dim. They have no gradient.
Var argmax(Var x, int64_t dim, bool keep_dims = false);
Var argmin(Var x, int64_t dim, bool keep_dims = false);

// The k largest or smallest elements along one dim, in sorted order, and their i64 indices; k =
// size of the dim sorts.
struct TopK {
  Var values;
  Var indices;
};
TopK top_k(Var x, int64_t k, int64_t dim = -1, bool largest = true);

// All elements along one dim in ascending or descending order, and their i64 indices: equal elements
// keep their order, and NaN comes first.
TopK sort(Var x, int64_t dim = -1, bool descending = false);
Var argsort(Var x, int64_t dim = -1, bool descending = false);

// The largest or smallest element so far along one dim, and its i64 index: that of the first of equal
// ones (PyTorch's: of the last).
TopK cummax(Var x, int64_t dim);
TopK cummin(Var x, int64_t dim);

// The element at q of the way through the sorted ones along one dim, between two of them by linear
// interpolation; 0 <= q <= 1. The median is the lower of two middle elements, as PyTorch's is.
Var quantile(Var x, double q, int64_t dim, bool keep_dims = false);
Var median(Var x, int64_t dim, bool keep_dims = false);

// Reduce conditions: whether any, or all of them, hold.
Var any(Var x, const ReducedDims& dims = {}, bool keep_dims = false);
Var all(Var x, const ReducedDims& dims = {}, bool keep_dims = false);

// ln(sum of e^x); stable, because it is computed relative to the largest element.
Var logsumexp(Var x, const ReducedDims& dims, bool keep_dims = false);

// The same of the elements so far along one dim.
Var logcumsumexp(Var x, int64_t dim);

// (sum of |x|^p)^(1/p); for an infinite p the largest or the smallest |x|, for 0 the number of
// elements that are not 0 (torch.linalg.vector_norm).
Var vector_norm(Var x, double p, const ReducedDims& dims = {}, bool keep_dims = false);

}  // namespace zg
