// Losses: f32 numbers of one micro-batch; names and meaning are those of PyTorch, also of the
// reduction: the mean by default, the sum, or none, which leaves one for each sample or element. The
// loss of a step is the mean of its micro-batches' losses, so that a model may make any function of
// them, add penalties of its parameters, or write a loss of its own from the functions of Vars.
//
// mse_loss and cross_entropy without options are ops, whose sums are in f64 or f32 in every dtype; the
// others are made of smaller ones. In mixed precision what they take exponentials, logarithms and sums
// of is in f32 (framework/passes/mixed_precision.h).
#pragma once

#include <cstdint>

#include "framework/nn/outputs.h"
#include "framework/nn/var.h"

namespace zg {

enum class Reduction { kMean, kSum, kNone };

// Of (prediction - target)^2; equal shapes.
Var mse_loss(Var prediction, Var target, Reduction reduction = Reduction::kMean);

struct ClassLossOptions {
  Var weight = {};               // f32 (V): how much each class counts; empty: 1
  double label_smoothing = 0.0;  // in [0, 1): what all classes share (arXiv 1512.00567)
  int64_t ignore_index = -100;   // rows with this target count nothing
  int64_t class_dim = -1;        // of the logits (PyTorch's is 1)
  Reduction reduction = Reduction::kMean;
};

// The mean over rows of -log(softmax(logits)[target]). logits (..., V), targets (...) i64 in [0,
// V).
Var cross_entropy(Var logits, Var targets);
// With options. The mean is over the rows that are not ignored, each by the weight of its class; NaN
// if there are none.
Var cross_entropy(Var logits, Var targets, const ClassLossOptions& options);
// The same of log(softmax(logits)); without smoothing.
Var nll_loss(Var log_probabilities, Var targets, const ClassLossOptions& options = {});

// -sum_v weight[v] targets[v] log(softmax(logits)[v]) of rows; equal shapes (..., V). No row is
// ignored.
Var soft_cross_entropy(Var logits, Var targets, const ClassLossOptions& options = {});

// Of |d|, with d = prediction - target.
Var l1_loss(Var prediction, Var target, Reduction reduction = Reduction::kMean);
// Of d^2 / (2 beta) where |d| < beta, else |d| - beta / 2; beta > 0.
Var smooth_l1_loss(Var prediction, Var target, double beta = 1.0,
                   Reduction reduction = Reduction::kMean);
// Of d^2 / 2 where |d| < delta, else delta (|d| - delta / 2); delta > 0 (Huber 1964).
Var huber_loss(Var prediction, Var target, double delta = 1.0,
               Reduction reduction = Reduction::kMean);

// Of -t log(s) - (1 - t) log(1 - s), s = sigmoid(logits); targets t in [0, 1], of the same shape.
Var bce_with_logits(Var logits, Var targets, Reduction reduction = Reduction::kMean);

// Of sum_v t (log(t) - log_prediction) of rows, the divergence of the prediction from the target
// t > 0; equal shapes (..., V). PyTorch's reduction "batchmean", with every row counted.
Var kl_div(Var log_prediction, Var target, Reduction reduction = Reduction::kMean);

// The cosine of the angle between a and b along one dim; lengths count at least epsilon.
Var cosine_similarity(Var a, Var b, int64_t dim = -1, double epsilon = 1e-8);
// Of 1 - cos(a, b) where the label of the row is 1, else max(0, cos(a, b) - margin). a and b
// (..., C), labels (...) i64 or f32.
Var cosine_embedding_loss(Var a, Var b, Var labels, double margin = 0.0,
                          Reduction reduction = Reduction::kMean);

// For Graph::train to return: the loss of a step is the sum of weights * terms over all of its
// micro-batches, divided by the sum of their weights, on any number of ranks with the same bits. A
// micro-batch without weight adds nothing. `terms` is what a loss without reduction gives, of finite
// elements also where the weight is 0; the weights have its shape. What eval programs hand out of it
// are two means over micro-batches, "loss" and "loss_weight": divide the sums that they make over a
// data set.
//   Var rows = cross_entropy(model(x), y, {.reduction = Reduction::kNone});  // (B)
//   return weighted_mean(rows, in.f32("weights", {B}));
Outputs weighted_mean(Var terms, Var weights);

namespace nn {
using zg::cross_entropy;
using zg::mse_loss;
}  // namespace nn

}  // namespace zg
