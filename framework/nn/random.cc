#include "framework/nn/random.h"

#include "framework/nn/conditions.h"
#include "framework/nn/dims.h"
#include "framework/nn/functions.h"

namespace zg {
namespace {

Var Draw(const char* op, Var like, ir::Attributes attributes) {
  return nn::Checked(op, like, [&]() -> StatusOr<Var> {
    nn::Trace& trace = nn::Trace::Of(op);
    if (!trace.training()) {
      return InvalidArgument(
          "{}: random values are for training; an eval is a function of its "
          "inputs and the parameters",
          nn::Caller(op, like));
    }
    attributes.Set("stream", trace.NextStream());
    return trace.Append(op, {like}, attributes);
  });
}

}  // namespace

Var uniform(Var like, double low, double high) {
  return Draw("uniform", like, {{"low", low}, {"high", high}});
}

Var normal(Var like, double mean, double stddev) {
  return Draw("normal", like, {{"mean", mean}, {"stddev", stddev}});
}

Var bernoulli(Var probability) { return uniform(probability) < probability; }

Var bernoulli(Var like, double probability) { return uniform(like) < probability; }

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
