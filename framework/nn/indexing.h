// Functions of Vars that select by position; scatter.h has those that write. Names and meaning are
// PyTorch's unless stated otherwise; dims may be negative, counted from the end. Indices are of dtype
// i64; an index outside of the dim ends the job. Gradients of an element that is read several times
// are summed in ascending order of position.
#pragma once

#include "framework/nn/shapes.h"
#include "framework/nn/var.h"

namespace zg {

// i64 [count]: start, start + step, ...
Var arange(int64_t count, int64_t start = 0, int64_t step = 1);

// f32 (..., num_classes): 1 where the class is the id, and 0 elsewhere; zeros for an id that is not
// a class. (PyTorch's is i64, and refuses such ids.)
Var one_hot(Var ids, int64_t num_classes);

// y[.., i, ..] = x[.., index[.., i, ..], ..] along one dim. The index has as many dims as x, and at
// most as many elements along the other dims.
Var gather(Var x, int64_t dim, Var index);

// The elements of x along one dim that a vector of indices names, in the vector's order. Along dim
// 0 it makes no copy of x.
Var index_select(Var x, int64_t dim, Var index);

// i64: how many elements of an ascending sequence are below each value, or with `right` not above it:
// where it would be inserted. The sequences lie along the last dim, one for each of the values' leading
// dims, or a vector for all. They have one dtype, floating-point or i64, and no gradient.
Var searchsorted(Var sorted, Var values, bool right = false);
inline Var bucketize(Var values, Var boundaries, bool right = false) {
  return searchsorted(boundaries, values, right);
}

// Treats the last two dims as a matrix and sets the elements above (tril) or below (triu) the given
// diagonal to 0; diagonal 0 is the main one, positive ones are above it.
Var tril(Var x, int64_t diagonal = 0);
Var triu(Var x, int64_t diagonal = 0);

// The diagonals of matrices, the last two dims (PyTorch's are the first two), offset as above; and
// matrices that have x's last dim as their diagonal, and zeros elsewhere.
Var diagonal(Var x, int64_t offset = 0);
Var diag_embed(Var x, int64_t offset = 0);

// x in reverse order along one dim; a copy.
Var flip(Var x, int64_t dim);

}  // namespace zg
