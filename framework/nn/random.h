// Random values: a different one for each element, step and micro-batch. Each call has a stream of its
// own, which depends on the calling module's path and not on ranks. So a model draws the same values at
// any stage, on any number of ranks, and after a resumed checkpoint.
//
// `like` gives the shape. Also for a parameter or a constant, each micro-batch draws values of its own.
//
// An eval program draws other values than training, and others in each of its runs: they depend on the
// steps that have been done, and on how often that program has run since the last one. The ranks' runs
// count as the runs of one rank, one after the other. dropout and dropout_along return x there.
#pragma once

#include "framework/nn/shapes.h"
#include "framework/nn/var.h"

namespace zg {

// Uniform in [low, high).
Var uniform(Var like, double low = 0.0, double high = 1.0);
Var normal(Var like, double mean = 0.0, double stddev = 1.0);
// Conditions: each is true with its probability.
Var bernoulli(Var probability);
Var bernoulli(Var like, double probability);

// The numbers 0 to count - 1 in a random order, i64.
Var randperm(int64_t count);

// An i64 index along one dim for each row, with the probabilities softmax(logits).
Var categorical(Var logits, int64_t dim = -1);
// softmax((logits + g) / temperature) with Gumbel noise g (arXiv 1611.01144): nearly one-hot at low
// temperatures. With `is_hard` the result is one-hot, and its gradient that of the soft one.
Var gumbel_softmax(Var logits, double temperature = 1.0, bool is_hard = false, int64_t dim = -1);

// dropout with one decision along these dims of x, for all of their elements: with {1, 2} on (B, H,
// W, C) whole channels are dropped, as by PyTorch's dropout2d.
Var dropout_along(Var x, double probability, const Dims& dims);

}  // namespace zg
