#include "framework/nn/functions.h"

#include <utility>

#include "framework/nn/trace.h"

namespace zg {

Var nn::append(const std::string& op, const std::vector<Var>& inputs, ir::Attributes attributes) {
  return Trace::Of(op).Append(op, inputs, std::move(attributes));
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
