// Random values while training: another one for each element, step and micro-batch, and each call has
// a stream of its own, which depends on the calling module's path, on nothing about ranks. So a model
// draws the same at any stage, on any number of ranks, and after a checkpoint.
//
// `like` gives the shape, and must be a value of every micro-batch (not a parameter): ranks draw for
// the micro-batches that they have. In an eval they are errors, but for dropout, which is x there.
#pragma once

#include "framework/nn/shapes.h"
#include "framework/nn/var.h"

namespace zg {

// From [low, high).
Var uniform(Var like, double low = 0.0, double high = 1.0);
Var normal(Var like, double mean = 0.0, double stddev = 1.0);
// Conditions: each holds with its probability.
Var bernoulli(Var probability);
Var bernoulli(Var like, double probability);

// dropout with one decision along these dims of x, for all of their elements: of {1, 2} for (B, H, W,
// C) whole channels are dropped, as by PyTorch's dropout2d.
Var dropout_along(Var x, double probability, const Dims& dims);

}  // namespace zg
