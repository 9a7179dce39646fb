#include "framework/nn/random.h"

#include <cmath>

#include "framework/nn/conditions.h"
#include "framework/nn/constants.h"
#include "framework/nn/dims.h"
#include "framework/nn/extremes.h"
#include "framework/nn/functions.h"
#include "framework/nn/gradients.h"
#include "framework/nn/indexing.h"
#include "framework/nn/products.h"

namespace zg {
namespace {

Var Draw(const char* op, Var like, ir::Attributes attributes, const Status& valid) {
  return nn::Checked(op, like, [&]() -> StatusOr<Var> {
    ZG_RETURN_IF_ERROR(valid.WithContext(nn::Caller(op, like)));
    nn::Trace& trace = nn::Trace::Of(op);
    attributes.Set("stream", trace.NextStream());
    return trace.Append(op, {like}, attributes);
  });
}

// -ln(-ln(u)), with u in [2^-25, 1): at 0 it would be infinite.
Var Gumbel(Var like) { return -log(-log(uniform(like, 0x1p-25, 1.0))); }

}  // namespace

Var uniform(Var like, double low, double high) {
  const bool is_valid = low <= high && std::isfinite(static_cast<float>(high - low)) &&
                        std::isfinite(static_cast<float>(low));
  return Draw("uniform", like, {{"low", low}, {"high", high}},
              is_valid
                  ? Status::Ok()
                  : InvalidArgument("got low {} and high {}, expected finite numbers, low <= high",
                                    low, high));
}

Var normal(Var like, double mean, double stddev) {
  const bool is_valid = stddev >= 0.0 && std::isfinite(mean + stddev);
  return Draw(
      "normal", like, {{"mean", mean}, {"stddev", stddev}},
      is_valid ? Status::Ok()
               : InvalidArgument("got mean {} and stddev {}, expected finite numbers, stddev >= 0",
                                 mean, stddev));
}

Var bernoulli(Var probability) { return uniform(probability) < probability; }

Var bernoulli(Var like, double probability) {
  return nn::Checked("bernoulli", like, [&]() -> StatusOr<Var> {
    if (probability >= 0.0 && probability <= 1.0) return uniform(like) < probability;
    return InvalidArgument("{}: got the probability {}, expected one from 0 to 1",
                           nn::Caller("bernoulli", like), probability);
  });
}

Var randperm(int64_t count) {
  const nn::Trace::Function called("randperm");
  return argsort(uniform(zeros({count})));
}

Var categorical(Var logits, int64_t dim) {
  const nn::Trace::Function called("categorical");
  return argmax(logits + Gumbel(logits), dim);
}

Var gumbel_softmax(Var logits, double temperature, bool is_hard, int64_t dim) {
  return nn::Checked("gumbel_softmax", logits, [&]() -> StatusOr<Var> {
    if (!(temperature > 0.0)) {
      return InvalidArgument("{}: got the temperature {}, expected a positive number",
                             nn::Caller("gumbel_softmax", logits), temperature);
    }
    ZG_ASSIGN_OR_RETURN(const int64_t own, nn::DimOf("gumbel_softmax", logits, dim));
    const Var soft = softmax((logits + Gumbel(logits)) * (1.0 / temperature), own);
    if (!is_hard) return soft;
    const Var index = argmax(soft, own);
    const Var hard =
        movedim(to(one_hot(index, logits.dim(static_cast<int>(own))), DType::kF32), -1, own);
    return soft + stop_gradient(hard - soft);
  });
}

Var dropout_along(Var x, double probability, const Dims& dims) {
  return nn::Checked("dropout_along", x, [&]() -> StatusOr<Var> {
    ZG_ASSIGN_OR_RETURN(const Dims own, nn::DimsOf("dropout_along", x, dims));
    if (!(probability >= 0.0 && probability < 1.0)) {
      return InvalidArgument("dropout_along: probability is {}, expected 0 <= probability < 1",
                             probability);
    }
    if (!nn::Trace::Of("dropout_along").training() || probability == 0.0) return x;
    Var like = x;
    for (const int64_t dim : own) like = slice(like, dim, 0, 1);
    return where(bernoulli(like, probability), 0.0, x) * (1.0 / (1.0 - probability));
  });
}

}  // namespace zg
