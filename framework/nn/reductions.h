// Functions of Vars that reduce dims. Names and meaning are PyTorch's: `dims`, one or a list, may be
// negative, counted from the end; an empty list means all of them. With `keep_dims` the reduced dims stay,
// with size 1. Sums are computed in f32, in an order that depends only on the shape.
//
// Each micro-batch is reduced on its own: a mean over the batch dim covers the samples of that
// micro-batch.
#pragma once

#include "framework/nn/shapes.h"
#include "framework/nn/var.h"

namespace zg {

// The sum of i64 is i64 and exact, up to overflow, which wraps around; that of bool counts.
Var sum(Var x, const ReducedDims& dims = {}, bool keep_dims = false);
Var mean(Var x, const ReducedDims& dims = {}, bool keep_dims = false);
// The mean square distance from the mean; the sum is divided by the number of elements minus
// `correction`.
Var variance(Var x, const ReducedDims& dims = {}, double correction = 1.0, bool keep_dims = false);
// Its square root; of equal elements the gradient is 0.
Var stddev(Var x, const ReducedDims& dims = {}, double correction = 1.0, bool keep_dims = false);
// The square root of the sum of squares; of zeros the gradient is 0.
Var norm(Var x, const ReducedDims& dims = {}, bool keep_dims = false);
// x / max(norm, epsilon) along one dim (PyTorch's default is dim 1).
Var normalize(Var x, int64_t dim = -1, double epsilon = 1e-12);

// The product, of halves of a dim by elements: its gradient is right also where elements are 0.
Var prod(Var x, const ReducedDims& dims = {}, bool keep_dims = false);

// y[.., i, ..] = the sum of x[.., j, ..] over j <= i along one dim, added one after the other.
Var cumsum(Var x, int64_t dim);
// The product of these, likewise. Its gradient is right also where elements are 0.
Var cumprod(Var x, int64_t dim);

// h_i = decay_i h_(i-1) + x_i along one dim, from h_0 = x_0 on; with `from_end` h_i = x_i + decay_i
// h_(i+1), from the last element on. For state space models and other gated recurrences, averages
// that forget, discounted returns. Shapes are broadcast (a copy). Computed in f32, one element after
// the other, and differentiable twice. With a state `before` the first element, of x's shape without the
// dim, h_0 = decay_0 before + x_0; else decay_0 is not used but must be finite.
Var linear_recurrence(Var decay, Var x, int64_t dim, bool from_end = false, Var before = {});

}  // namespace zg
