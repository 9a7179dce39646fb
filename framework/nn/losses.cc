#include "framework/nn/losses.h"

#include "framework/nn/trace.h"

namespace zg {
namespace {

// The sum over what `counted` has an element for, divided by their number.
Var Mean(const char* op, std::vector<Var> inputs, Var counted) {
  nn::Trace* trace = nn::Trace::Current();
  if (trace == nullptr) return Var();
  return trace->Append(op, inputs,
                       {{"divisor", static_cast<double>(counted.shape().num_elements())}});
}

}  // namespace

Var mse_loss(Var prediction, Var target) {
  return Mean("mse_loss", {prediction, target}, prediction);
}

Var cross_entropy(Var logits, Var targets) {
  return Mean("softmax_cross_entropy", {logits, targets}, targets);
}

}  // namespace zg
