// Functions of Vars that write at positions. Names and meaning are PyTorch's unless stated otherwise;
// dims may be negative, counted from the end. Indices are of dtype i64; an index outside of the dim
// ends the job. Elements that meet at one place do so in ascending order of their positions.
#pragma once

#include "framework/nn/functions.h"
#include "framework/nn/shapes.h"
#include "framework/nn/var.h"

namespace zg {

// x, with y[.., index[.., i, ..], ..] = source[.., i, ..] along one dim, for all i: the last one stays
// at its place, and gets the gradient. The index has as many dims as x, and in each at most as many
// elements as the source, and, but for this dim, as x.
Var scatter(Var x, int64_t dim, Var index, Var source);
Var scatter(Var x, int64_t dim, Var index, double value);

// The same with += instead of =.
Var scatter_add(Var x, int64_t dim, Var index, Var source);

// What becomes of the elements that meet at one place.
enum class ScatterReduce { kSum, kMean, kAmax, kAmin };

// The same with the sum, mean, largest or smallest of the elements that meet; x's own is one of them
// if `include_self`. Where none arrives, x stays. Of equal elements of the source the first one has
// the gradient (PyTorch's amax and amin share it), and NaN is the most extreme.
Var scatter_reduce(Var x, int64_t dim, Var index, Var source, ScatterReduce reduce,
                   bool include_self = true);

// These for whole rows: along one dim a vector of indices says where the rows of the source go. The
// source has x's shape, with the vector's size along this dim. Messages of edges to their nodes, rows
// of tokens back from an expert.
Var index_copy(Var x, int64_t dim, Var index, Var source);
Var index_add(Var x, int64_t dim, Var index, Var source);
Var index_reduce(Var x, int64_t dim, Var index, Var source, ScatterReduce reduce,
                 bool include_self = true);
Var index_fill(Var x, int64_t dim, Var index, double value);

// The softmax of the elements along dim 0 that have the same id, a vector of ids in [0, count): the
// attention of edges x (E, ...) that lead to one node. Of one id only it is softmax(x, 0).
Var segment_softmax(Var x, Var ids, int64_t count);

// f32 (count): how many ids (...) have each value, or the sum of their weights; ids are in [0, count).
// (PyTorch's is i64, and as long as the largest id asks for.)
Var bincount(Var ids, int64_t count);
Var bincount(Var ids, int64_t count, Var weights);

// f32 (bins): how many elements are in each of `bins` equal parts of [low, high], its end included.
Var histc(Var x, int64_t bins, double low, double high);

}  // namespace zg
