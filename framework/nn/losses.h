// Losses: f32 scalars, each the mean over one micro-batch. The compiler averages them over all
// micro-batches and ranks. A model may therefore only add, subtract and scale them.
#pragma once

#include "framework/nn/var.h"

namespace zg {

// The mean over all elements of (prediction - target)^2; equal shapes.
Var mse_loss(Var prediction, Var target);

// The mean over rows of -log(softmax(logits)[target]). logits (..., V), targets (...) i64 in [0,
// V).
Var cross_entropy(Var logits, Var targets);

namespace nn {
using zg::cross_entropy;
using zg::mse_loss;
}  // namespace nn

}  // namespace zg
