// Connectionist temporal classification (Graves et al., ICML 2006): the loss of texts that are not
// aligned with the steps of a signal. A path names a class for each step; its text are the classes
// without repetitions, then without blanks. Shapes: N samples, T steps, C classes, U labels.
#include <fmt/format.h>

#include "framework/ir/op_registry.h"
#include "framework/ops/op_rules.h"

namespace zg {
namespace {

using Types = std::vector<TensorType>;
using Signatures = std::vector<ir::SbpSignature>;

const Sbp B = Sbp::B();
const Sbp P = Sbp::P();

// The operands from `first` on: log probabilities, targets and their lengths.
Status CheckOperands(const ir::OpCall& call, const InputNames& names, size_t first) {
  const TensorType& log_probabilities = call.inputs[first];
  const Shape& shape = log_probabilities.shape;
  if (log_probabilities.dtype != DType::kF32 || shape.num_dims() != 3) {
    return Rejected(call, names, "log_probabilities are not f32 (samples, steps, classes)");
  }
  for (size_t i = first + 1; i < call.inputs.size(); ++i) {
    const bool is_targets = i == first + 1;
    const Shape& own = call.inputs[i].shape;
    const bool fits = call.inputs[i].dtype == DType::kI64 &&
                      own.num_dims() == (is_targets ? 2 : 1) && own.dim(0) == shape.dim(0);
    if (fits) continue;
    return Rejected(
        call, names,
        fmt::format("{} are not i64 {}", names[i], is_targets ? "(samples, labels)" : "(samples)"));
  }
  const int64_t blank = call.attributes.Int("blank");
  if (blank >= 0 && blank < shape.dim(2)) return Status::Ok();
  return Rejected(call, names, fmt::format("got the blank {}, expected one of the classes", blank));
}

// Every operand is split by samples.
ir::SbpSignature BySamples(const ir::OpCall& call) {
  return {NdSbp(call.inputs.size(), Sbp::S(0)), {Sbp::S(0)}};
}

// Three sums of probabilities for each state of a sample and step.
int64_t FlopsOf(const ir::OpCall& call, size_t first) {
  const int64_t states = 2 * call.inputs[first + 1].shape.dim(1) + 1;
  return 20 * call.inputs[first].shape.dim(0) * call.inputs[first].shape.dim(1) * states;
}

ir::OpDef CtcLoss() {
  const InputNames names = {"log_probabilities", "targets", "input_lengths", "target_lengths"};
  ir::OpDef op;
  op.name = "ctc_loss";
  op.doc =
      "loss[n] = -log of the sum, over the paths of the first input_lengths[n] steps whose text are the "
      "first target_lengths[n] of targets[n], of a path's probability, the product of its classes'; "
      "infinite if there is none. `blank` is a class that is no label.";
  op.min_inputs = op.max_inputs = 4;
  op.attributes = {{"blank", int64_t{0}}};
  op.traits.computes_in_f32 = true;
  op.infer_shape = [names](const ir::OpCall& call) -> StatusOr<Types> {
    ZG_RETURN_IF_ERROR(CheckOperands(call, names, 0));
    return Types{{DType::kF32, {call.inputs[0].shape.dim(0)}}};
  };
  op.sbp_signatures = [](const ir::OpCall& call) { return Signatures{BySamples(call)}; };
  op.gradient = [](ir::GradientContext& context) {
    if (!context.needs(0)) return Status::Ok();
    context.set_input_gradient(
        0, context.builder().Op("ctc_loss_grad",
                                {context.output_gradient(), context.input(0), context.input(1),
                                 context.input(2), context.input(3)},
                                context.node().attributes));
    return Status::Ok();
  };
  op.flops = [](const ir::OpCall& call) { return FlopsOf(call, 0); };
  return op;
}

ir::OpDef CtcLossGrad() {
  const InputNames names = {"dloss", "log_probabilities", "targets", "input_lengths",
                            "target_lengths"};
  ir::OpDef op;
  op.name = "ctc_loss_grad";
  op.doc =
      "dlog_probabilities[n, t, c] = -dloss[n] times the probability that a path of the text has class "
      "c at step t, 0 from step input_lengths[n] on. Where there is no path it is NaN, or 0 if dloss "
      "is.";
  op.min_inputs = op.max_inputs = 5;
  op.attributes = {{"blank", int64_t{0}}};
  op.traits.computes_in_f32 = true;
  op.infer_shape = [names](const ir::OpCall& call) -> StatusOr<Types> {
    ZG_RETURN_IF_ERROR(CheckOperands(call, names, 1));
    const TensorType dloss = {DType::kF32, {call.inputs[1].shape.dim(0)}};
    if (call.inputs[0] != dloss) return Rejected(call, names, "dloss is not f32 (samples)");
    return Types{call.inputs[1]};
  };
  op.sbp_signatures = [](const ir::OpCall& call) {
    return Signatures{BySamples(call), {{P, B, B, B, B}, {P}}};
  };
  op.not_differentiable = kNoSecondDerivative;
  op.flops = [](const ir::OpCall& call) { return 3 * FlopsOf(call, 1); };
  return op;
}

}  // namespace

void RegisterCtcLossOps(ir::OpRegistry& registry) {
  registry.Register(CtcLoss());
  registry.Register(CtcLossGrad());
}

}  // namespace zg
