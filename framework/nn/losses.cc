#include "framework/nn/losses.h"

#include "framework/nn/conditions.h"
#include "framework/nn/dims.h"
#include "framework/nn/functions.h"
#include "framework/nn/gradients.h"
#include "framework/nn/indexing.h"
#include "framework/nn/products.h"
#include "framework/nn/reductions.h"
#include "framework/nn/shapes.h"
#include "framework/nn/trace.h"

namespace zg {
namespace {

// The sum divided by the number of elements of `counted`; `function` is for errors.
Var Mean(const char* function, const char* op, std::vector<Var> inputs, Var counted) {
  return nn::Trace::Of(function).Append(
      op, inputs, {{"divisor", static_cast<double>(counted.shape().num_elements())}});
}

Var Reduced(Var terms, Reduction reduction) {
  if (reduction == Reduction::kNone) return terms;
  return reduction == Reduction::kSum ? sum(terms) : mean(terms);
}

// For operands that must have one shape, without broadcasting: a loss of operands that match only
// by chance is a mistake. `what` describes b in the message.
template <typename Build>
Var OfEqualShapes(const char* function, Var a, Var b, const Build& build,
                  const char* what = "the target") {
  return nn::Checked(function, a, [&]() -> StatusOr<Var> {
    ZG_RETURN_IF_ERROR(nn::Trace::Of(function).CheckUsable(b).WithContext(function));
    if (a.shape() != b.shape()) {
      return InvalidArgument("{}: got {} %{} {}, expected the same shape", nn::Caller(function, a),
                             what, b.value()->name, b.value()->type.ToString());
    }
    return build();
  });
}

// With b = d between -limit and limit, b (d - b / 2): d^2 / 2 up to the limit, and linear beyond. Its
// slope is b.
Var BentSquare(Var prediction, Var target, double limit) {
  return custom_gradient(
      {prediction - target},
      [&](const GradientInputs& in) {
        const Var bent = clamp(in[0], -limit, limit);
        return bent * (in[0] - bent * 0.5);
      },
      [&](const GradientInputs& in, Var, Var slope) -> std::vector<Var> {
        return {slope * clamp(in[0], -limit, limit)};
      });
}

// ln(x), but at least -100. That of 0 has no infinite slope, which would be NaN times that of a sigmoid.
Var LimitedLog(Var x) {
  const Var is_zero = to(equal(x, 0.0), DType::kF32);
  return clamp_min(log(x + is_zero), -100.0) - 100.0 * is_zero;
}

Status CheckLimit(const char* function, const char* name, double limit) {
  if (limit > 0.0 && limit < 1e30) return Status::Ok();
  return InvalidArgument("{}: {} is {}, expected a positive number", function, name, limit);
}

Status CheckOptions(const char* function, Var logits, const ClassLossOptions& options) {
  if (!(options.label_smoothing >= 0.0 && options.label_smoothing < 1.0)) {
    return InvalidArgument("{}: label_smoothing is {}, expected 0 <= label_smoothing < 1", function,
                           options.label_smoothing);
  }
  if (options.weight.empty()) return Status::Ok();
  const Shape weights{logits.dim(static_cast<int>(options.class_dim))};
  if (options.weight.shape() == weights) return Status::Ok();
  return InvalidArgument("{}: got weights {}, expected one for each class, {}",
                         nn::Caller(function, logits), options.weight.shape().ToString(),
                         weights.ToString());
}

// x with the classes as the last dim.
Var ClassesLast(Var x, int64_t class_dim) {
  Dims order;
  for (int64_t dim = 0; dim < x.shape().num_dims(); ++dim) {
    if (dim != class_dim) order.push_back(dim);
  }
  order.push_back(class_dim);
  return permute(x, order);
}

// From log probabilities (..., V) and class indices. The first `classes` columns are classes, which
// share the probability of label smoothing.
StatusOr<Var> OfClasses(const char* function, Var log_probabilities, Var targets, int64_t classes,
                        const ClassLossOptions& options) {
  Dims rows = log_probabilities.shape().dims();
  rows.pop_back();
  if (targets.dtype() != DType::kI64 || targets.shape().dims() != rows) {
    return InvalidArgument("{}: got the targets %{} {}, expected an i64 index for each row, i64{}",
                           function, targets.value()->name, targets.value()->type.ToString(),
                           Shape(rows).ToString());
  }
  const Var counted = not_equal(targets, static_cast<double>(options.ignore_index));
  const Var target = where(counted, targets, 0.0);
  const Var picked =
      where(counted, squeeze(gather(log_probabilities, -1, unsqueeze(target, -1)), -1), 0.0);
  Var share = to(counted, DType::kF32);
  if (!options.weight.empty()) {
    share = share * squeeze(embedding(target, unsqueeze(options.weight, 1)), -1);
  }
  Var loss = where(counted, -(share * picked), 0.0);
  if (options.label_smoothing > 0.0) {
    Var all = slice(log_probabilities, -1, 0, classes);
    if (!options.weight.empty()) all = all * slice(options.weight, 0, 0, classes);
    const Var of_all = where(counted, -sum(all, {-1}), 0.0);
    loss = loss * (1.0 - options.label_smoothing) +
           of_all * (options.label_smoothing / static_cast<double>(classes));
  }
  if (options.reduction == Reduction::kMean) return sum(loss) / sum(share);
  return Reduced(loss, options.reduction);
}

}  // namespace

Var mse_loss(Var prediction, Var target, Reduction reduction) {
  if (reduction == Reduction::kMean) {
    return Mean("mse_loss", "mse_loss", {prediction, target}, prediction);
  }
  return OfEqualShapes("mse_loss", prediction, target,
                       [&] { return Reduced(square(prediction - target), reduction); });
}

Var cross_entropy(Var logits, Var targets) {
  const nn::Trace::Function called("cross_entropy");
  return Mean("cross_entropy", "softmax_cross_entropy", {logits, targets}, targets);
}

Var cross_entropy(Var logits, Var targets, const ClassLossOptions& options) {
  return nn::Checked("cross_entropy", logits, [&]() -> StatusOr<Var> {
    ZG_RETURN_IF_ERROR(
        nn::Trace::Of("cross_entropy").CheckUsable(targets).WithContext("cross_entropy: targets"));
    ZG_ASSIGN_OR_RETURN(const int64_t dim, nn::DimOf("cross_entropy", logits, options.class_dim));
    ZG_RETURN_IF_ERROR(CheckOptions("cross_entropy", logits, options));
    const bool is_last = dim == logits.shape().num_dims() - 1;
    const int64_t classes = is_last ? nn::NumClasses(logits) : logits.dim(static_cast<int>(dim));
    return OfClasses("cross_entropy", log_softmax(ClassesLast(logits, dim)), targets, classes,
                     options);
  });
}

Var nll_loss(Var log_probabilities, Var targets, const ClassLossOptions& options) {
  return nn::Checked("nll_loss", log_probabilities, [&]() -> StatusOr<Var> {
    ZG_RETURN_IF_ERROR(
        nn::Trace::Of("nll_loss").CheckUsable(targets).WithContext("nll_loss: targets"));
    ZG_ASSIGN_OR_RETURN(const int64_t dim,
                        nn::DimOf("nll_loss", log_probabilities, options.class_dim));
    ZG_RETURN_IF_ERROR(CheckOptions("nll_loss", log_probabilities, options));
    if (options.label_smoothing > 0.0) {
      return InvalidArgument("nll_loss: got label_smoothing {}; cross_entropy has that",
                             options.label_smoothing);
    }
    return OfClasses("nll_loss", ClassesLast(log_probabilities, dim), targets,
                     log_probabilities.dim(static_cast<int>(dim)), options);
  });
}

Var soft_cross_entropy(Var logits, Var targets, const ClassLossOptions& options) {
  return OfEqualShapes("soft_cross_entropy", logits, targets, [&]() -> StatusOr<Var> {
    ZG_ASSIGN_OR_RETURN(const int64_t dim,
                        nn::DimOf("soft_cross_entropy", logits, options.class_dim));
    ZG_RETURN_IF_ERROR(CheckOptions("soft_cross_entropy", logits, options));
    Var share = ClassesLast(targets, dim);
    if (options.label_smoothing > 0.0) {
      const double of_each = options.label_smoothing / static_cast<double>(share.dim(-1));
      share = share * (1.0 - options.label_smoothing) + of_each;
    }
    if (!options.weight.empty()) share = share * options.weight;
    const Var terms = share * log_softmax(ClassesLast(logits, dim));
    return Reduced(-sum(terms, {-1}), options.reduction);
  });
}

Var l1_loss(Var prediction, Var target, Reduction reduction) {
  return OfEqualShapes("l1_loss", prediction, target,
                       [&] { return Reduced(abs(prediction - target), reduction); });
}

Var smooth_l1_loss(Var prediction, Var target, double beta, Reduction reduction) {
  return OfEqualShapes("smooth_l1_loss", prediction, target, [&]() -> StatusOr<Var> {
    ZG_RETURN_IF_ERROR(CheckLimit("smooth_l1_loss", "beta", beta));
    return Reduced(BentSquare(prediction, target, beta), reduction) / beta;
  });
}

Var huber_loss(Var prediction, Var target, double delta, Reduction reduction) {
  return OfEqualShapes("huber_loss", prediction, target, [&]() -> StatusOr<Var> {
    ZG_RETURN_IF_ERROR(CheckLimit("huber_loss", "delta", delta));
    return Reduced(BentSquare(prediction, target, delta), reduction);
  });
}

// -t log(s) - (1 - t) log(1 - s) = log(1 + e^x) - t x.
Var bce_with_logits(Var logits, Var targets, Reduction reduction) {
  BceOptions options;
  options.reduction = reduction;
  return bce_with_logits(logits, targets, options);
}

// With p the weight of t: (1 - t) x + (1 + (p - 1) t) log(1 + e^-x), which is for x <= 0
// -p t x + (1 + (p - 1) t) log(1 + e^x). On its side of 0 neither cancels where the loss is small.
Var bce_with_logits(Var logits, Var targets, const BceOptions& options) {
  return OfEqualShapes("bce_with_logits", logits, targets, [&] {
    const Var is_positive = logits > 0.0;
    Var smooth = softplus(where(is_positive, -logits, logits));
    Var positive = targets;
    if (!options.pos_weight.empty()) {
      smooth = ((options.pos_weight - 1.0) * targets + 1.0) * smooth;
      positive = options.pos_weight * targets;
    }
    const Var terms = where(is_positive, 1.0 - targets, -positive) * logits + smooth;
    return Reduced(options.weight.empty() ? terms : terms * options.weight, options.reduction);
  });
}

Var binary_cross_entropy(Var probabilities, Var targets, const BceOptions& options) {
  return OfEqualShapes("binary_cross_entropy", probabilities, targets, [&] {
    Var positive = targets * LimitedLog(probabilities);
    if (!options.pos_weight.empty()) positive = positive * options.pos_weight;
    const Var terms = -(positive + (1.0 - targets) * LimitedLog(1.0 - probabilities));
    return Reduced(options.weight.empty() ? terms : terms * options.weight, options.reduction);
  });
}

Var kl_div(Var log_prediction, Var target, Reduction reduction, bool log_target) {
  return OfEqualShapes("kl_div", log_prediction, target, [&] {
    const Var share = log_target ? exp(target) : target;
    const Var absent = equal(share, 0.0);
    // The logarithm of 1 in the place of that of 0. A sum, since where() would round f32 targets to 16
    // bits in mixed precision.
    const Var log_share = log_target ? target : log(target + to(absent, DType::kF32));
    const Var terms = where(absent, 0.0, share * (log_share - log_prediction));
    return Reduced(sum(terms, {-1}), reduction);
  });
}

Var cosine_similarity(Var a, Var b, int64_t dim, double epsilon) {
  const nn::Trace::Function called("cosine_similarity");
  const Var lengths = clamp_min(norm(a, {dim}), epsilon) * clamp_min(norm(b, {dim}), epsilon);
  return sum(a * b, {dim}) / lengths;
}

// PyTorch's, whose epsilon is added to the squares.
Var pairwise_distance(Var a, Var b, double epsilon) {
  const nn::Trace::Function called("pairwise_distance");
  return norm(a - b + epsilon, {-1});
}

Var cdist(Var a, Var b) {
  return nn::Checked("cdist", a, [&]() -> StatusOr<Var> {
    if (a.shape().num_dims() < 2 || b.shape().num_dims() < 2) {
      return InvalidArgument("cdist: got a {} and b {}, expected rows (..., P, C) and (..., R, C)",
                             a.shape().ToString(), b.shape().ToString());
    }
    constexpr int64_t kFewRows = 25;  // PyTorch's, too
    if (a.dim(-2) <= kFewRows && b.dim(-2) <= kFewRows) {
      return norm(unsqueeze(a, -2) - unsqueeze(b, -3), {-1});
    }
    const Var of_a = sum(square(a), {-1}, /*keep_dims=*/true);
    const Var of_b = transpose(sum(square(b), {-1}, /*keep_dims=*/true), -2, -1);
    const Var squares = of_a + of_b - 2.0 * matmul(a, transpose(b, -2, -1));
    // Where the difference is not above 0, neither distance nor gradient are.
    const Var is_apart = greater(squares, 0.0);
    return where(is_apart, sqrt(where(is_apart, squares, 1.0)), 0.0);
  });
}

Var cosine_embedding_loss(Var a, Var b, Var labels, double margin, Reduction reduction) {
  return OfEqualShapes("cosine_embedding_loss", a, b, [&] {
    const Var squares = (sum(square(a), {-1}) + 1e-12) * (sum(square(b), {-1}) + 1e-12);
    const Var cosine = sum(a * b, {-1}) * rsqrt(squares);
    const Var apart = clamp_min(cosine - margin, 0.0);
    return Reduced(where(equal(labels, 1.0), 1.0 - cosine, apart), reduction);
  });
}

Var triplet_margin_loss(Var anchor, Var positive, Var negative, double margin,
                        Reduction reduction) {
  const auto loss = [&] {
    const Var to_positive = norm(anchor - positive + 1e-6, {-1});
    const Var to_negative = norm(anchor - negative + 1e-6, {-1});
    return Reduced(clamp_min(to_positive - to_negative + margin, 0.0), reduction);
  };
  return OfEqualShapes(
      "triplet_margin_loss", anchor, positive,
      [&] { return OfEqualShapes("triplet_margin_loss", anchor, negative, loss, "the negative"); },
      "the positive");
}

Var margin_ranking_loss(Var a, Var b, Var labels, double margin, Reduction reduction) {
  const auto loss = [&] { return Reduced(clamp_min(margin - labels * (a - b), 0.0), reduction); };
  return OfEqualShapes(
      "margin_ranking_loss", a, b,
      [&] { return OfEqualShapes("margin_ranking_loss", a, labels, loss, "the labels"); }, "b");
}

Var hinge_embedding_loss(Var x, Var labels, double margin, Reduction reduction) {
  return OfEqualShapes(
      "hinge_embedding_loss", x, labels,
      [&] { return Reduced(where(equal(labels, 1.0), x, clamp_min(margin - x, 0.0)), reduction); },
      "the labels");
}

Var soft_margin_loss(Var x, Var labels, Reduction reduction) {
  return OfEqualShapes("soft_margin_loss", x, labels,
                       [&] { return Reduced(softplus(-(labels * x)), reduction); });
}

Var multilabel_soft_margin_loss(Var logits, Var targets, Reduction reduction) {
  return OfEqualShapes("multilabel_soft_margin_loss", logits, targets, [&] {
    return Reduced(mean(bce_with_logits(logits, targets, Reduction::kNone), {-1}), reduction);
  });
}

Var multi_margin_loss(Var scores, Var targets, double margin, Reduction reduction) {
  return nn::Checked("multi_margin_loss", scores, [&]() -> StatusOr<Var> {
    ZG_RETURN_IF_ERROR(nn::Trace::Of("multi_margin_loss")
                           .CheckUsable(targets)
                           .WithContext("multi_margin_loss: targets"));
    if (scores.shape().num_dims() != 2 || targets.dtype() != DType::kI64 ||
        targets.shape() != Shape{scores.dim(0)}) {
      return InvalidArgument(
          "{}: got the targets %{} {}, expected scores (N, C) and i64 targets (N)",
          nn::Caller("multi_margin_loss", scores), targets.value()->name,
          targets.value()->type.ToString());
    }
    const Var index = unsqueeze(targets, 1);
    const Var excess = clamp_min(scores - gather(scores, 1, index) + margin, 0.0);
    const Var is_target = equal(arange(scores.dim(1)), index);
    return Reduced(mean(where(is_target, 0.0, excess), {1}), reduction);
  });
}

Var gaussian_nll_loss(Var prediction, Var target, Var variance, double epsilon,
                      Reduction reduction) {
  const auto loss = [&] {
    // A variance below epsilon keeps its gradient, and so can grow again.
    const Var v = variance + stop_gradient(clamp_min(variance, epsilon) - variance);
    return Reduced((log(v) + square(prediction - target) / v) * 0.5, reduction);
  };
  return OfEqualShapes("gaussian_nll_loss", prediction, target, [&] {
    return OfEqualShapes("gaussian_nll_loss", prediction, variance, loss, "the variance");
  });
}

Var poisson_nll_loss(Var log_prediction, Var target, Reduction reduction) {
  return OfEqualShapes("poisson_nll_loss", log_prediction, target, [&] {
    return Reduced(exp(log_prediction) - target * log_prediction, reduction);
  });
}

Var ctc_loss(Var log_probabilities, Var targets, Var input_lengths, Var target_lengths,
             const CtcOptions& options) {
  const nn::Trace::Function called("ctc_loss");
  Var losses = nn::append("ctc_loss", {log_probabilities, targets, input_lengths, target_lengths},
                          {{"blank", options.blank}});
  if (losses.empty()) return losses;
  if (options.zero_infinity) losses = where(isfinite(losses), losses, 0.0);
  if (options.reduction == Reduction::kMean) {
    losses = losses / to(clamp_min(target_lengths, 1.0), DType::kF32);
  }
  return Reduced(losses, options.reduction);
}

Outputs weighted_mean(Var terms, Var weights) {
  // Divided by the number of elements, so that the weight of a full micro-batch is 1 and f16 needs
  // no other scale.
  const Var loss = OfEqualShapes(
      "weighted_mean", terms, weights, [&] { return mean(terms * weights); }, "the weights");
  return {{"loss", loss}, {"loss_weight", loss.empty() ? loss : mean(weights)}};
}

}  // namespace zg
