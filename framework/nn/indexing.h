// Functions of Vars that choose by position. Names and meaning are those of PyTorch where nothing else
// is said; dims may be negative, counted from the end. Indices are of dtype i64; one outside the dim
// ends the job. Gradients of what is read several times are added up in ascending order of position.
#pragma once

#include "framework/nn/shapes.h"
#include "framework/nn/var.h"

namespace zg {

// i64 [count]: start, start + step, ...
Var arange(int64_t count, int64_t start = 0, int64_t step = 1);

// f32 (..., num_classes): 1 where the class is the id, and 0 elsewhere; of an id that is no class,
// zeros. (PyTorch's is of i64, and refuses such ids.)
Var one_hot(Var ids, int64_t num_classes);

// y[.., i, ..] = x[.., index[.., i, ..], ..] along one dim. The index has as many dims as x, and no
// more elements along the others.
Var gather(Var x, int64_t dim, Var index);

// The elements of x along one dim that a vector of indices names, in its order. Along dim 0 without a
// copy of x.
Var index_select(Var x, int64_t dim, Var index);

// The last two dims as a matrix, whose elements above (tril) or below (triu) the given diagonal become
// 0; diagonal 0 is the main one, positive ones lie above it.
Var tril(Var x, int64_t diagonal = 0);
Var triu(Var x, int64_t diagonal = 0);

// In reverse order along one dim; a copy.
Var flip(Var x, int64_t dim);

}  // namespace zg
