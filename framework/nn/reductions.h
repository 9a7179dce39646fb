// Functions of Vars that reduce dims. Names and meaning are those of PyTorch: `dims` may be negative,
// counted from the end; none are all of them. With `keep_dims` they stay, of size 1. Sums are added up
// in f32 in an order that depends on the shape only.
//
// A micro-batch is reduced on its own: a mean over the batch dim is that over its samples.
#pragma once

#include "framework/nn/shapes.h"
#include "framework/nn/var.h"

namespace zg {

Var sum(Var x, const Dims& dims = {}, bool keep_dims = false);
Var mean(Var x, const Dims& dims = {}, bool keep_dims = false);
// The mean square distance from the mean; divided by the number of elements less `correction`.
Var variance(Var x, const Dims& dims = {}, double correction = 1.0, bool keep_dims = false);
// The square root of the sum of squares.
Var norm(Var x, const Dims& dims = {}, bool keep_dims = false);

// y[.., i, ..] = the sum of x[.., j, ..] over j <= i along one dim, one added after the other.
Var cumsum(Var x, int64_t dim);

}  // namespace zg
