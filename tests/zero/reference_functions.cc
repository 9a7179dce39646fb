#include "tests/zero/reference_functions.h"

#include <cmath>
#include <vector>

namespace zg {
namespace {

Var Positive(Var x) { return x * x + 0.5; }

Var GroupNorm(Var a, Var b) {
  const Var x = reshape(a, {2, 3, 4});
  const Var centred = x - mean(x, {2}, true);
  return centred * rsqrt(mean(square(centred), {2}, true) + 1e-5) * reshape(b, {3, 1});
}

// Targets [1, 2], [2, 2] and none, in 5, 4 and 3 steps.
Var TextLoss(Var logits, Reduction reduction, int64_t blank) {
  const Var places = arange(3);
  const Var targets =
      stack({1.0 + to(equal(places, 1.0), DType::kI64), full({3}, 2.0, DType::kI64)}, 1);
  const Var lengths = 2.0 * to(less(places, 2.0), DType::kI64);
  CtcOptions options;
  options.blank = blank;
  options.reduction = reduction;
  return ctc_loss(log_softmax(logits), targets, 5.0 - places, lengths, options);
}

Var SumOfParts(const Complex& x, Var factor) { return x.real * factor + x.imag; }

Complex Spectrum(Var x, int64_t size, int64_t hop, Var window, bool center = true) {
  StftOptions options;
  options.hop = hop;
  options.window = window;
  options.center = center;
  return stft(reshape(x, {2, 12}), size, options);
}

Var FromSpectrum(const Complex& x, Var window) {
  StftOptions options;
  options.hop = 2;
  options.window = window;
  const Complex turned = {x.real - 0.5 * x.imag, x.imag + 0.5 * x.real};  // times 1 + i / 2
  return istft(turned, 8, 11, options);
}

Var ClassWeights() { return to(arange(3, 1), DType::kF32) * 0.5; }  // 0.5, 1, 1.5

Var ClassLoss(Var a, Var, Reduction reduction) {
  ClassLossOptions options;
  options.weight = ClassWeights();
  options.label_smoothing = 0.1;
  options.ignore_index = 2;
  options.class_dim = 1;
  options.reduction = reduction;
  return cross_entropy(a, argmax(flip(a, -1), 1), options);
}

}  // namespace

const std::map<std::string, Function>& TensorFunctions() {
  static const auto* const functions = new std::map<std::string, Function>{
      {"add", [](Var a, Var b) { return a + b; }},
      {"subtract", [](Var a, Var b) { return a - b; }},
      {"multiply", [](Var a, Var b) { return a * b; }},
      {"divide", [](Var a, Var b) { return a / Positive(b); }},
      {"numbers", [](Var a, Var b) { return 2.0 - (a + 1.0) / 3.0 * b - 0.5 / (square(b) + 1.0); }},
      {"maximum", [](Var a, Var b) { return maximum(a, b); }},
      {"minimum", [](Var a, Var b) { return minimum(a, b); }},
      {"clamp", [](Var a, Var b) { return clamp(a, -0.5, 1.0) * b; }},
      {"abs", [](Var a, Var b) { return abs(a) * b; }},
      {"sqrt", [](Var a, Var b) { return sqrt(Positive(a)) * b; }},
      {"rsqrt", [](Var a, Var b) { return rsqrt(Positive(a)) * b; }},
      {"exp", [](Var a, Var b) { return exp(a) * b; }},
      {"log", [](Var a, Var b) { return log(Positive(a)) * b; }},
      {"sin", [](Var a, Var b) { return sin(a) * b; }},
      {"cos", [](Var a, Var b) { return cos(a) * b; }},
      {"tanh", [](Var a, Var b) { return tanh(a) * b; }},
      {"sigmoid", [](Var a, Var b) { return sigmoid(a) * b; }},
      {"softplus", [](Var a, Var b) { return softplus(a) * b; }},
      {"erf", [](Var a, Var b) { return erf(a) * b; }},
      {"relu", [](Var a, Var b) { return relu(a) * b; }},
      {"leaky_relu", [](Var a, Var b) { return leaky_relu(a, 0.2) * b; }},
      {"elu", [](Var a, Var b) { return elu(a, 0.7) * b; }},
      {"silu", [](Var a, Var b) { return silu(a) * b; }},
      {"gelu", [](Var a, Var b) { return gelu(a) * b; }},
      {"gelu_erf", [](Var a, Var b) { return gelu_erf(a) * b; }},
      {"sum",
       [](Var a, Var b) {
         return sum(a, {0, 2}) * b;
       }},
      {"mean", [](Var a, Var b) { return mean(a, {1}, true) * b; }},
      {"variance",
       [](Var a, Var b) {
         return variance(a, {0, -1}) * b;
       }},
      {"norm", [](Var a, Var b) { return norm(a, {-1}) * b; }},
      {"reshape",
       [](Var a, Var b) {
         return reshape(a, {6, 4}) * b;
       }},
      {"permute",
       [](Var a, Var b) {
         return permute(a, {2, 0, 1}) * b;
       }},
      {"slice", [](Var a, Var b) { return slice(a, 2, 1, 4, 2) * b; }},
      {"select", [](Var a, Var b) { return select(a, 1, -1) * b; }},
      {"concat",
       [](Var a, Var b) {
         return square(concat({a, b}, 1));
       }},
      {"stack",
       [](Var a, Var b) {
         return square(stack({a, b}, 1));
       }},
      {"chunk", [](Var a, Var b) { return chunk(a, 2, -1)[0] * chunk(a, 2, -1)[1] * b; }},
      {"expand",
       [](Var a, Var b) {
         return expand(b, {2, 3, 4}) * a;
       }},
      {"repeat",
       [](Var a, Var b) {
         return repeat(a, {1, 2, 1}) * b;
       }},
      {"pad", [](Var a, Var b) { return pad(a, 1, 1, 2, 0.5) * b; }},
      {"roll", [](Var a, Var b) { return roll(a, 2, -1) * b; }},
      {"matmul", matmul},
      {"matmul_batch", matmul},
      {"matmul_vector", matmul},
      {"einsum_attention", [](Var a, Var b) { return einsum("bqd,bkd->bqk", a, b); }},
      {"einsum_outer", [](Var a, Var b) { return einsum("bqd,kd->kbq", a, b); }},
      {"softmax", [](Var a, Var b) { return softmax(a) * b; }},
      {"softmax_dim", [](Var a, Var b) { return softmax(a, 1) * b; }},
      {"log_softmax", [](Var a, Var b) { return log_softmax(a) * b; }},
      {"group_norm", GroupNorm},
      {"mse_loss", [](Var a, Var b) { return mse_loss(a, b); }},
      {"l1_loss", [](Var a, Var b) { return l1_loss(a, b); }},
      {"smooth_l1_loss", [](Var a, Var b) { return smooth_l1_loss(a, b, 0.7); }},
      {"huber_loss", [](Var a, Var b) { return huber_loss(a, b, 0.7); }},
      {"bce_with_logits", [](Var a, Var b) { return bce_with_logits(a, sigmoid(b)); }},
      {"soft_cross_entropy", [](Var a, Var b) { return soft_cross_entropy(a, softmax(b)); }},
      {"kl_div", [](Var a, Var b) { return kl_div(log_softmax(a), softmax(b)); }},
      {"where", [](Var a, Var b) { return where(a > b, a, 2.0 * b); }},
      {"masked_fill", [](Var a, Var b) { return masked_fill(a, b > 0.0, 0.25) * b; }},
      {"comparisons",
       [](Var a, Var b) {
         return to(a <= b, DType::kF32) * a + to(not_equal(a, b), DType::kF32) * b;
       }},
      {"logical",
       [](Var a, Var b) { return where(((a > 0.0) & (b < 1.0)) | !(a > -1.0), a * b, b); }},
      {"pow", [](Var a, Var b) { return pow(Positive(a), b); }},
      {"pow_number", [](Var a, Var b) { return pow(Positive(a), 1.7) * b + pow(a, 3.0); }},
      {"gather", [](Var a, Var b) { return gather(a, 1, argmin(b, 1, true)) * b; }},
      {"index_select", [](Var a, Var b) { return index_select(a, 1, arange(3, 2, -1)) * b; }},
      {"index_select_rows",
       [](Var a, Var b) {
         const Var rows = to(not_equal(arange(4), 2.0), DType::kI64);  // 1, 1, 0, 1
         return index_select(a, 0, rows) * b;
       }},
      {"one_hot", [](Var a, Var b) { return one_hot(argmax(a, -1), 4) * b + a; }},
      {"tril", [](Var a, Var b) { return tril(a, -1) * b; }},
      {"triu", [](Var a, Var b) { return triu(a, 1) * b; }},
      {"flip", [](Var a, Var b) { return flip(a, 1) * b; }},
      {"max",
       [](Var a, Var b) {
         return max(a, {0, 2}) * b;
       }},
      {"min", [](Var a, Var b) { return min(a, {1}, true) * b; }},
      {"max_all", [](Var a, Var b) { return max(a) * b; }},
      {"top_k", [](Var a, Var b) { return top_k(a, 2).values * b; }},
      {"sort", [](Var a, Var b) { return top_k(a, 3, 1, /*largest=*/false).values * b; }},
      {"any_all",
       [](Var a, Var b) { return where(any(a > 1.5, {2}, true) | all(a > -1.0, {1}, true), a, b); }},
      {"cumsum", [](Var a, Var b) { return cumsum(a, 1) * b; }},
      {"logsumexp",
       [](Var a, Var b) {
         return logsumexp(a, {0, 2}) * b;
       }},
      {"vector_norm", [](Var a, Var b) { return vector_norm(a, 3.0, {1}) * b; }},
      {"largest_norm", [](Var a, Var b) { return vector_norm(a, HUGE_VAL, {1}) * b; }},
      {"stop_gradient", [](Var a, Var b) { return stop_gradient(a) * b + a; }},
      {"cross_entropy_options", [](Var a, Var b) { return ClassLoss(a, b, Reduction::kMean) * b; }},
      {"cross_entropy_sum", [](Var a, Var b) { return ClassLoss(a, b, Reduction::kSum) * b; }},
      {"cross_entropy_of_rows",
       [](Var a, Var b) { return ClassLoss(a, b, Reduction::kNone) * b; }},
      {"cross_entropy_smooth",
       [](Var a, Var b) {
         return cross_entropy(a, argmax(b, -1), {.label_smoothing = 0.2}) + sum(b);
       }},
      {"nll_loss",
       [](Var a, Var b) {
         return nll_loss(log_softmax(a), argmax(b, -1), {.ignore_index = 1}) + sum(b);
       }},
      {"soft_cross_entropy_options",
       [](Var a, Var b) {
         return soft_cross_entropy(a, softmax(b, 1), {.weight = ClassWeights(),
                                                      .label_smoothing = 0.1,
                                                      .class_dim = 1,
                                                      .reduction = Reduction::kNone});
       }},
      {"mse_loss_of_elements", [](Var a, Var b) { return mse_loss(a, b, Reduction::kNone); }},
      {"l1_loss_sum", [](Var a, Var b) { return l1_loss(a, b, Reduction::kSum); }},
      {"cosine_similarity", [](Var a, Var b) { return cosine_similarity(a, b, 1); }},
      {"cosine_embedding_loss",
       [](Var a, Var b) {
         const Var labels = to(equal(arange(3), 1.0), DType::kF32) * 2.0 - 1.0;  // -1, 1, -1
         return cosine_embedding_loss(a, b, expand(labels, {2, 3}), 0.1, Reduction::kNone);
       }},
      {"expm1", [](Var a, Var b) { return expm1(a) * b; }},
      {"log1p", [](Var a, Var b) { return log1p(a * a) * b; }},
      {"floor", [](Var a, Var b) { return floor(a) * b + a; }},
      {"ceil", [](Var a, Var b) { return ceil(a) * b + a; }},
      {"round", [](Var a, Var b) { return round(2.0 * a) * b + a; }},
      {"relu6", [](Var a, Var b) { return relu6(4.0 * a) * b; }},
      {"hardsigmoid", [](Var a, Var b) { return hardsigmoid(2.0 * a) * b; }},
      {"hardswish", [](Var a, Var b) { return hardswish(2.0 * a) * b; }},
      {"mish", [](Var a, Var b) { return mish(a) * b; }},
      {"selu", [](Var a, Var b) { return selu(a) * b; }},
      {"log_sigmoid", [](Var a, Var b) { return log_sigmoid(a) * b; }},
      {"glu", [](Var a, Var b) { return glu(a) * b; }},
      {"prelu", prelu},
      {"prelu_of_all", prelu},
      {"scatter_add",
       [](Var a, Var b) {
         const Var corner = slice(slice(b, 1, 0, 2), 2, 0, 3);
         return scatter_add(b, 1, to(corner > 0.0, DType::kI64), a);
       }},
      {"scatter_add_rows",
       [](Var a, Var b) { return scatter_add(b, 0, 3 * to(a > 0.0, DType::kI64), a); }},
      {"index_add",
       [](Var a, Var b) {
         return index_add(b, 1, 2 * abs(arange(3, -1)), a);  // 2, 0, 2
       }},
      {"index_add_rows", [](Var a, Var b) { return square(index_add(b, 0, arange(2, 4, -3), a)); }},
      {"stddev",
       [](Var a, Var b) {
         return stddev(a, {0, 2}) * b;
       }},
      {"normalize", [](Var a, Var b) { return normalize(a) * b; }},
      {"unbind", [](Var a, Var b) { return unbind(a, 1)[0] * b + unbind(a, 1)[2]; }},
      {"logaddexp", [](Var a, Var b) { return logaddexp(3.0 * a, b); }},
      {"eye", [](Var a, Var b) { return matmul(a, eye(4) * b); }},
      {"linspace", [](Var a, Var b) { return a * b * linspace(-1.0, 2.0, 4); }},
      {"triplet_margin_loss",
       [](Var a, Var b) {
         return triplet_margin_loss(a, b, flip(a, 1) * b, 0.5, Reduction::kNone);
       }},
      {"atan", [](Var a, Var b) { return atan(a) * b; }},
      {"atan2", [](Var a, Var b) { return atan2(a, b); }},
      {"atan2_column", [](Var a, Var b) { return atan2(b, 1.0 - a); }},
      {"tan", [](Var a, Var b) { return tan(a * 0.5) * b; }},
      {"asin", [](Var a, Var b) { return asin(a * 0.45) * b; }},
      {"acos", [](Var a, Var b) { return acos(a * 0.45) * b; }},
      {"sinh", [](Var a, Var b) { return sinh(a) * b; }},
      {"cosh", [](Var a, Var b) { return cosh(a) * b; }},
      {"asinh", [](Var a, Var b) { return asinh(a) * b; }},
      {"acosh", [](Var a, Var b) { return acosh(1.0 + Positive(a)) * b; }},
      {"atanh", [](Var a, Var b) { return atanh(a * 0.45) * b; }},
      {"exp2", [](Var a, Var b) { return exp2(a) * b; }},
      {"log2", [](Var a, Var b) { return log2(Positive(a)) * b; }},
      {"log10", [](Var a, Var b) { return log10(Positive(a)) * b; }},
      {"trunc", [](Var a, Var b) { return trunc(3.0 * a) * b + a; }},
      {"lerp", [](Var a, Var b) { return lerp(a, b, 0.3) + lerp(a, b, b); }},
      {"softsign", [](Var a, Var b) { return softsign(a) * b; }},
      {"hardtanh", [](Var a, Var b) { return hardtanh(a) * b; }},
      {"celu", [](Var a, Var b) { return celu(a, 0.7) * b; }},
      {"prod", [](Var a, Var b) { return prod(a, {1}) * b; }},
      {"prod_with_zeros", [](Var a, Var b) { return prod(relu(a), {0, 2}, true) * b; }},
      {"cumprod", [](Var a, Var b) { return cumprod(a, -1) * b; }},
      {"linear_recurrence", [](Var a, Var b) { return linear_recurrence(b, a, -1); }},
      {"linear_recurrence_from_end",
       [](Var a, Var b) { return linear_recurrence(b, a, 2, /*from_end=*/true); }},
      {"cumprod_with_zeros", [](Var a, Var b) { return cumprod(relu(a + 0.5), 1) * b; }},
      {"sort_descending", [](Var a, Var b) { return sort(a, 1, /*descending=*/true).values * b; }},
      {"argsort", [](Var a, Var b) { return gather(b, -1, argsort(a)) + a; }},
      {"diagonal", [](Var a, Var b) { return diagonal(a) * b; }},
      {"diagonal_below", [](Var a, Var b) { return diagonal(a, -1) * b; }},
      {"diagonal_above", [](Var a, Var b) { return diagonal(a, 2) * b; }},
      {"diag_embed", [](Var a, Var b) { return diag_embed(a) * b; }},
      {"diag_embed_below", [](Var a, Var b) { return diag_embed(a, -2) * b; }},
      {"margin_ranking_loss",
       [](Var a, Var b) {
         return margin_ranking_loss(a, b, sign(flip(a, 1)), 0.5, Reduction::kNone);
       }},
      {"hinge_embedding_loss",
       [](Var a, Var b) {
         return hinge_embedding_loss(b, sign(flip(a, 1)), 0.5, Reduction::kNone) + a;
       }},
      {"gaussian_nll_loss",
       [](Var a, Var b) {
         return gaussian_nll_loss(a, b, Positive(flip(b, 1)), 1e-6, Reduction::kNone);
       }},
      {"poisson_nll_loss",
       [](Var a, Var b) { return poisson_nll_loss(a, b, Reduction::kNone); }},
      {"movedim", [](Var a, Var b) { return movedim(a, 2, 0) * b; }},
      {"unflatten", [](Var a, Var b) { return unflatten(a, 2, {2, -1}) * b; }},
      {"repeat_interleave", [](Var a, Var b) { return repeat_interleave(a, 3, 1) * b; }},
      {"diff", [](Var a, Var b) { return diff(a, 1) * b; }},
      {"quantile", [](Var a, Var b) { return quantile(a, 0.3, 2) * b; }},
      {"median", [](Var a, Var b) { return median(a, -1) * b; }},
      {"pairwise_distance", [](Var a, Var b) { return pairwise_distance(a, b); }},
      {"cdist", [](Var a, Var b) { return cdist(a, b); }},
      {"cdist_of_many_rows", [](Var a, Var b) { return cdist(a, b); }},
      {"soft_margin_loss",
       [](Var a, Var b) { return soft_margin_loss(a, sign(b), Reduction::kNone) + b; }},
      {"multilabel_soft_margin_loss",
       [](Var a, Var b) {
         const Var targets = sigmoid(stop_gradient(b));
         return multilabel_soft_margin_loss(reshape(a, {6, 4}), targets, Reduction::kNone) + sum(b);
       }},
      {"multi_margin_loss",
       [](Var a, Var b) {
         std::vector<Var> targets;  // 0 3 1 2 2 0
         for (const int64_t target : {0, 3, 1, 2, 2, 0}) targets.push_back(arange(1, target));
         return multi_margin_loss(reshape(a, {6, 4}), concat(targets), 0.7, Reduction::kNone) * b;
       }},
      {"einsum_of_three",
       [](Var a, Var b) {
         return einsum("bij,jk,bi->bk", {a, b, select(a, 2, 0)});
       }},
      {"einsum_with_dots", [](Var a, Var b) { return einsum("...d,k...d->...k", a, b); }},
      {"einsum_of_diagonals", [](Var a, Var b) { return einsum("nik,iki", a, b); }},
      {"einsum_of_one",
       [](Var a, Var b) { return sum(einsum("ijj->ij", {slice(a, 2, 0, 3)}), 1) * b; }},
      {"trace_by_einsum", [](Var a, Var b) { return einsum("...ii", {slice(a, 2, 0, 3)}) * b; }},
      {"linear_recurrence_with_a_state",
       [](Var a, Var b) {
         return linear_recurrence(b, a, 2, false, select(a, 2, 1) * select(b, 2, 2));
       }},
      {"linear_recurrence_with_a_state_from_end",
       [](Var a, Var b) { return linear_recurrence(b, a, 2, true, select(a, 2, 1)); }},
      {"argmax_of_integers",
       [](Var a, Var b) {
         const Var whole = to(a * 8589934592.0, DType::kI64);
         return b * squeeze(gather(a, 2, argmax(whole, 2, /*keep_dims=*/true)), 2);
       }},
      {"min_of_integers",
       [](Var a, Var b) {
         const Var whole = to(a * 8589934592.0, DType::kI64);
         return b * to(min(whole, {0, 1}), DType::kF32) / 8589934592.0 + sum(a);
       }},
      {"outer", [](Var a, Var b) { return outer(flatten(a), b); }},
      {"tanhshrink", [](Var a, Var b) { return tanhshrink(a) * b; }},
      {"softshrink", [](Var a, Var b) { return softshrink(a, 0.7) * b; }},
      {"hardshrink", [](Var a, Var b) { return hardshrink(a, 0.7) * b; }},
      {"threshold", [](Var a, Var b) { return threshold(a, 0.3, -2.0) * b; }},
      {"ctc_loss", [](Var a, Var b) { return TextLoss(b, Reduction::kNone, 0) + sum(a); }},
      {"ctc_loss_mean", [](Var a, Var b) { return TextLoss(b, Reduction::kMean, 3) + sum(a); }},
      {"grouped_matmul",
       [](Var a, Var b) {
         return grouped_matmul(a, b, to(equal(arange(3), 1.0), DType::kI64));  // 0, 1, 0
       }},
      {"grouped_matmul_of_several",
       [](Var a, Var b) {
         return grouped_matmul(unsqueeze(a, 2), b, 2 * arange(2, 1, -1), /*transposed=*/true);
       }},
      {"rfft", [](Var a, Var b) { return SumOfParts(rfft(a), b); }},
      {"rfft_of_an_odd_size", [](Var a, Var b) { return SumOfParts(rfft(a, 1), b); }},
      {"fft", [](Var a, Var b) { return SumOfParts(fft({a, b}, 1), a); }},
      {"ifft", [](Var a, Var b) { return SumOfParts(ifft({a, b}), a); }},
      {"irfft", [](Var a, Var b) { return square(irfft({a, b}, 6)); }},
      {"irfft_of_an_odd_size", [](Var a, Var b) { return square(irfft({a, b}, 5, 1)); }},
      {"convolution_by_rfft2",
       [](Var a, Var b) { return irfft2(multiply(rfft2(a), conj(rfft2(b))), 4); }},
      {"stft", [](Var a, Var b) { return abs(Spectrum(a, 8, 3, b)); }},
      {"stft_not_centred",
       [](Var a, Var b) { return SumOfParts(Spectrum(a, 6, 2, cos(b), false), sum(a)); }},
      {"istft",
       [](Var a, Var b) { return FromSpectrum(Spectrum(a, 8, 2, b), square(b) + 0.5); }},
      {"roll_along_two_dims",
       [](Var a, Var b) {
         return roll(a, {1, -2}, {1, 2}) * b;
       }},
      {"rfft_of_few", [](Var a, Var b) { return SumOfParts(rfft(a, 2, 2), b); }},
      {"irfft_of_few", [](Var a, Var b) { return square(irfft({a, b}, 10)); }},
  };
  return *functions;
}

}  // namespace zg
