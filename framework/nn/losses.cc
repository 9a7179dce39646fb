#include "framework/nn/losses.h"

#include "framework/nn/trace.h"

namespace zg {
namespace {

// The sum over what `counted` has an element for, divided by their number; `function` is for
// errors.
Var Mean(const char* function, const char* op, std::vector<Var> inputs, Var counted) {
  return nn::Trace::Of(function).Append(
      op, inputs, {{"divisor", static_cast<double>(counted.shape().num_elements())}});
}

}  // namespace

Var mse_loss(Var prediction, Var target) {
  return Mean("mse_loss", "mse_loss", {prediction, target}, prediction);
}

Var cross_entropy(Var logits, Var targets) {
  return Mean("cross_entropy", "softmax_cross_entropy", {logits, targets}, targets);
}

}  // namespace zg
