// Losses: f32 numbers of one micro-batch. Names and meaning are PyTorch's, also those of the
// reduction: the mean by default, the sum, or none, which leaves one number for each sample or
// element. The loss of a step is the mean of its micro-batches' losses, so a model may use any
// function of them, add penalties on its parameters, or write a loss of its own from the functions
// of Vars.
//
// mse_loss and cross_entropy without options are ops, whose sums are in f64 or f32 in every dtype;
// the others are made of smaller ops. In mixed precision their exponentials, logarithms and sums
// are computed in f32 (framework/passes/mixed_precision.h).
#pragma once

#include <cstdint>

#include "framework/nn/outputs.h"
#include "framework/nn/var.h"

namespace zg {

enum class Reduction { kMean, kSum, kNone };

// Reduces (prediction - target)^2; equal shapes.
Var mse_loss(Var prediction, Var target, Reduction reduction = Reduction::kMean);

struct ClassLossOptions {
  Var weight = {};  // f32 (V): the weight of each class; empty: 1
  // In [0, 1): the probability that all classes share (arXiv 1512.00567), without the columns that
  // padded_logits adds.
  double label_smoothing = 0.0;
  int64_t ignore_index = -100;  // rows with this target are ignored
  int64_t class_dim = -1;       // dim of the classes in the logits (PyTorch's is 1)
  Reduction reduction = Reduction::kMean;
};

// The mean over rows of -log(softmax(logits)[target]). logits (..., V), targets (...) i64 in [0,
// V). The logarithm of a row's sum is an f32 number of the logits' magnitude: the loss and its gradient
// are as exact as that, 1e-4 for logits of 1000; with options, log_softmax computes it below the maximum.
Var cross_entropy(Var logits, Var targets);
// With options. The mean is over the rows that are not ignored, each weighted by its class; NaN if
// there are none.
Var cross_entropy(Var logits, Var targets, const ClassLossOptions& options);
// The same for log(softmax(logits)) as input; without smoothing.
Var nll_loss(Var log_probabilities, Var targets, const ClassLossOptions& options = {});

// -sum_v weight[v] targets[v] log(softmax(logits)[v]) for each row; equal shapes (..., V). No row
// is ignored.
Var soft_cross_entropy(Var logits, Var targets, const ClassLossOptions& options = {});

// Reduces |d|, with d = prediction - target.
Var l1_loss(Var prediction, Var target, Reduction reduction = Reduction::kMean);
// Reduces d^2 / (2 beta) where |d| < beta, else |d| - beta / 2; beta > 0.
Var smooth_l1_loss(Var prediction, Var target, double beta = 1.0,
                   Reduction reduction = Reduction::kMean);
// Reduces d^2 / 2 where |d| < delta, else delta (|d| - delta / 2); delta > 0 (Huber 1964).
Var huber_loss(Var prediction, Var target, double delta = 1.0,
               Reduction reduction = Reduction::kMean);

// Reduces -t log(s) - (1 - t) log(1 - s), s = sigmoid(logits); targets t in [0, 1], of the same
// shape.
Var bce_with_logits(Var logits, Var targets, Reduction reduction = Reduction::kMean);

struct BceOptions {
  Var weight = {};      // of each element; empty: 1
  Var pos_weight = {};  // of the term of t, such as how rare positives of a class are; empty: 1
  Reduction reduction = Reduction::kMean;
};
// With weights, whose shapes are broadcast.
Var bce_with_logits(Var logits, Var targets, const BceOptions& options);
// The same for probabilities s in place of logits, whose logarithms count as at least -100, with the
// slope 1 at 0 (PyTorch: 10^12); with logits rounding is less.
Var binary_cross_entropy(Var probabilities, Var targets, const BceOptions& options = {});

// Reduces sum_v t (log(t) - log_prediction) over rows, the divergence of the prediction from the
// target t >= 0, where t = 0 adds nothing; equal shapes (..., V). With log_target the target is
// log(t). kMean is the mean over rows: PyTorch's "batchmean" with all dims but the last as the
// batch; its "mean" is V times smaller. kNone gives a value per row, PyTorch's "none" one per
// element.
Var kl_div(Var log_prediction, Var target, Reduction reduction = Reduction::kMean,
           bool log_target = false);

// The cosine of the angle between a and b along one dim; lengths below epsilon count as epsilon.
Var cosine_similarity(Var a, Var b, int64_t dim = -1, double epsilon = 1e-8);
// The length of a - b + epsilon along the last dim, where a and b are broadcast.
Var pairwise_distance(Var a, Var b, double epsilon = 1e-6);
// The distances of all rows of a (..., M, C) from all of b (..., N, C): (..., M, N). With more than 25
// rows, as in PyTorch, computed as |a|^2 + |b|^2 - 2 a b: a distance below a thousandth of the rows'
// lengths is then lost in rounding. Else from the differences.
Var cdist(Var a, Var b);
// Reduces 1 - cos(a, b) where the label of the row is 1, else max(0, cos(a, b) - margin). a and b
// (..., C), labels (...) i64 or f32.
Var cosine_embedding_loss(Var a, Var b, Var labels, double margin = 0.0,
                          Reduction reduction = Reduction::kMean);

// Reduces max(0, |anchor - positive| - |anchor - negative| + margin) with the distances of rows
// (..., C), to whose differences 1e-6 is added as in PyTorch.
Var triplet_margin_loss(Var anchor, Var positive, Var negative, double margin = 1.0,
                        Reduction reduction = Reduction::kMean);

// Reduces max(0, margin - label (a - b)), which ranks a above b where the label is 1 and below where it
// is -1; equal shapes.
Var margin_ranking_loss(Var a, Var b, Var labels, double margin = 0.0,
                        Reduction reduction = Reduction::kMean);
// Reduces x where the label is 1, else max(0, margin - x); equal shapes.
Var hinge_embedding_loss(Var x, Var labels, double margin = 1.0,
                         Reduction reduction = Reduction::kMean);

// Reduces ln(1 + exp(-label x)), labels 1 or -1; equal shapes.
Var soft_margin_loss(Var x, Var labels, Reduction reduction = Reduction::kMean);
// Reduces the mean over classes c of bce_with_logits, one value per row; logits and targets (..., C).
Var multilabel_soft_margin_loss(Var logits, Var targets, Reduction reduction = Reduction::kMean);
// Reduces sum over c != t of max(0, margin - x[t] + x[c]) / C for scores x (N, C) and i64 targets (N).
Var multi_margin_loss(Var scores, Var targets, double margin = 1.0,
                      Reduction reduction = Reduction::kMean);

// Reduces (ln(v) + d^2 / v) / 2 with d = prediction - target and v = max(variance, epsilon); equal
// shapes.
Var gaussian_nll_loss(Var prediction, Var target, Var variance, double epsilon = 1e-6,
                      Reduction reduction = Reduction::kMean);
// Reduces e^p - target p with the prediction p, the logarithm of the expected count; equal shapes.
Var poisson_nll_loss(Var log_prediction, Var target, Reduction reduction = Reduction::kMean);

struct CtcOptions {
  int64_t blank = 0;  // the class that is no label
  bool zero_infinity =
      false;  // a text that has no path counts as 0, without gradient; else as infinity
  Reduction reduction = Reduction::kMean;
};

// Connectionist temporal classification (Graves et al., ICML 2006): the negative logarithm of the
// probability of a text whose labels are not aligned with the steps. log_probabilities (N, T, C), batch
// first, such as log_softmax(logits); targets (N, U), of which the first target_lengths (N) are read,
// of the first input_lengths (N) steps; all i64. The mean is over the losses divided by their target's
// length, which counts as at least 1. No second derivative.
Var ctc_loss(Var log_probabilities, Var targets, Var input_lengths, Var target_lengths,
             const CtcOptions& options = {});

// Returned from the function of Graph::train: the loss of a step is the sum of weights * terms over
// all of its micro-batches, divided by the sum of their weights, with the same bits on any number
// of ranks. A micro-batch without weight adds nothing. `terms` is the result of a loss without
// reduction; its elements must be finite also where the weight is 0. The weights have its shape.
// Eval programs return two means over micro-batches, "loss" and "loss_weight"; for a data set, sum
// each and divide the sums.
//   ClassLossOptions per_row;
//   per_row.reduction = Reduction::kNone;
//   Var rows = cross_entropy(model(x), y, per_row);  // (B)
//   return weighted_mean(rows, in.f32("weights", {B}));
Outputs weighted_mean(Var terms, Var weights);

namespace nn {
using zg::cross_entropy;
using zg::mse_loss;
}  // namespace nn

}  // namespace zg
