#include "framework/nn/functions.h"

#include <utility>

#include "framework/nn/trace.h"

namespace zg {

Var nn::append(const std::string& op, const std::vector<Var>& inputs, ir::Attributes attributes) {
  return Trace::Of(op).Append(op, inputs, std::move(attributes));
}

std::vector<Var> nn::append_all(const std::string& op, const std::vector<Var>& inputs,
                                ir::Attributes attributes) {
  return Trace::Of(op).AppendAll(op, inputs, std::move(attributes));
}

Var pow(Var x, double exponent) {
  const nn::Trace::Function called("pow");
  if (exponent == 0.5) return sqrt(x);
  if (exponent == 1.0) return x;
  if (exponent == 2.0) return square(x);
  if (exponent == -0.5) return rsqrt(x);
  if (exponent == -1.0) return reciprocal(x);
  return nn::append("power", {x}, {{"exponent", exponent}});
}

Var clamp(Var x, double low, double high) {
  if (!(low <= high)) {
    return nn::Trace::Of("clamp").Fail(
        InvalidArgument("clamp: got the range [{}, {}], expected low <= high", low, high));
  }
  const nn::Trace::Function called("clamp");
  return clamp_max(clamp_min(x, low), high);
}

Var dropout(Var x, double probability) {
  nn::Trace& trace = nn::Trace::Of("dropout");
  if (!(probability >= 0.0 && probability < 1.0)) {
    return trace.Fail(
        InvalidArgument("dropout: probability is {}, expected 0 <= probability < 1", probability));
  }
  if (!trace.training() || probability == 0.0) return x;
  return trace.Append("dropout", {x},
                      {{"probability", probability}, {"stream", trace.NextStream()}});
}

}  // namespace zg
