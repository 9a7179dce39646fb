// The scan of Mamba (Gu and Dao, arXiv 2312.00752, algorithm 2): D channels of N states each, whose
// decays and inputs depend on the token. The same as linear_recurrence of exp(step a) and step x b,
// times c, but the states (B, T, D, N) exist only in a kernel's cache.
// Shapes: x, step, y (B, T, D), a (D, N), b, c (B, T, N), state, last (B, D, N); all f32.
#include <fmt/format.h>

#include "framework/ir/op_registry.h"
#include "framework/ops/formula_gradient.h"
#include "framework/ops/op_rules.h"

namespace zg {
namespace {

using Ints = std::vector<int64_t>;
using Types = std::vector<TensorType>;
using Signatures = std::vector<ir::SbpSignature>;

const Sbp B = Sbp::B();
const Sbp P = Sbp::P();
const Sbp kBySample = Sbp::S(0);
const Sbp kByChannel = Sbp::S(2);

// Checks x, step, a, b, c and, if there is one, the state, which begin at operand `first`.
Status CheckOperands(const ir::OpCall& call, const InputNames& names, size_t first) {
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    if (call.inputs[i].dtype == DType::kF32) continue;
    return Rejected(call, names, fmt::format("{} is not f32", names[i]));
  }
  const Shape& x = call.inputs[first].shape;
  const Shape& a = call.inputs[first + 2].shape;
  if (x.num_dims() != 3) return Rejected(call, names, "x is not (B, T, D)");
  if (call.inputs[first + 1].shape != x) return Rejected(call, names, "step is not like x");
  if (a.num_dims() != 2 || a.dim(0) != x.dim(2)) return Rejected(call, names, "a is not (D, N)");
  for (size_t i = first + 3; i < first + 5; ++i) {
    if (call.inputs[i].shape == Shape{x.dim(0), x.dim(1), a.dim(1)}) continue;
    return Rejected(call, names, fmt::format("{} is not (B, T, N)", names[i]));
  }
  if (call.inputs.size() > first + 5 &&
      call.inputs[first + 5].shape != Shape{x.dim(0), a.dim(0), a.dim(1)}) {
    return Rejected(call, names, "state is not (B, D, N)");
  }
  return Status::Ok();
}

ir::OpDef SelectiveScan() {
  const InputNames names = {"x", "step", "a", "b", "c", "state"};
  ir::OpDef op;
  op.name = "selective_scan";
  op.traits.computes_in_f32 = true;
  op.doc =
      "h_t = exp(step_t a) h_(t-1) + step_t x_t b_t for each channel and state, from `state` or "
      "from 0 on; y_t = sum over n of h_tn c_tn. Outputs: y, and the last h.";
  op.min_inputs = 5;
  op.max_inputs = 6;
  op.num_outputs = 2;
  op.infer_shape = [names](const ir::OpCall& call) -> StatusOr<Types> {
    ZG_RETURN_IF_ERROR(CheckOperands(call, names, 0));
    const TensorType& x = call.inputs[0];
    const Shape& a = call.inputs[2].shape;
    return Types{x, {DType::kF32, {x.shape.dim(0), a.dim(0), a.dim(1)}}};
  };
  op.sbp_signatures = [](const ir::OpCall& call) {
    ir::SbpSignature by_sample = {{kBySample, kBySample, B, kBySample, kBySample},
                                  {kBySample, kBySample}};
    ir::SbpSignature by_channel = {{kByChannel, kByChannel, Sbp::S(0), B, B},
                                   {kByChannel, Sbp::S(1)}};
    if (call.inputs.size() == 6) {
      by_sample.inputs.push_back(kBySample);
      by_channel.inputs.push_back(Sbp::S(1));
    }
    return Signatures{by_sample, by_channel};
  };
  op.gradient = [](ir::GradientContext& context) -> Status {
    ZG_RETURN_IF_ERROR(CheckOnlyFirstUsed(context));
    ir::Builder& builder = context.builder();
    std::vector<ir::Value*> operands = {context.output_gradient()};
    bool needs_any = false;
    for (int i = 0; i < context.num_inputs(); ++i) {
      operands.push_back(context.input(i));
      needs_any = needs_any || context.needs(i);
    }
    if (!needs_any) return Status::Ok();
    std::vector<ir::Value*> gradients = builder.Ops("selective_scan_grad", operands);
    if (context.needs(2)) {
      gradients[2] = builder.Op("sum", {gradients[2]}, {{"dims", Ints{0}}});
    }
    for (int i = 0; i < context.num_inputs(); ++i) {
      if (context.needs(i)) context.set_input_gradient(i, gradients[i]);
    }
    return Status::Ok();
  };
  op.flops = [](const ir::OpCall& call) {
    return 6 * call.inputs[0].shape.num_elements() * call.inputs[2].shape.dim(1);
  };
  return op;
}

Term SumOver(Term x, int64_t dim) { return Append("sum", x, {{"dims", Ints{dim}}}); }

// (B, T, D, N) from (B, T, D), and from (B, T, N).
Term OfChannels(Term x) { return AsColumn(x); }
Term OfStates(Term x) { return Append("expand", x, {{"dims", Ints{2}}, {"sizes", Ints{1}}}); }

// The first of T steps, (B, 1, D, N), and such a step followed by zeros.
Term FirstStep(Term x) { return Append("slice", x, {{"dim", 1}, {"start", 0}, {"size", 1}}); }
Term AsFirstStep(Term x, int64_t steps) {
  return Append("pad", x, {{"dim", 1}, {"before", 0}, {"after", steps - 1}});
}

std::vector<Term> GradFormula(const std::vector<Term>& in, const ir::Node& node) {
  const Term dy = in[0], x = in[1], step = in[2], a = in[3], b = in[4], c = in[5];
  const int64_t steps = node.inputs[1]->type.shape.dim(1);
  if (steps == 0) return std::vector<Term>(6);
  const Term decay = Exp(OfChannels(step) * a);
  Term added = OfChannels(step * x) * OfStates(b), state;
  if (in.size() == 7) {
    state = Append("expand", in[6], {{"dims", Ints{1}}, {"sizes", Ints{1}}});
    added = added + AsFirstStep(FirstStep(decay) * state, steps);
  }
  const Term h = Append("linear_recurrence", decay, added, {{"dim", 1}});
  const Term dh = OfChannels(dy) * OfStates(c);
  if (dh.value == nullptr || h.value == nullptr) return std::vector<Term>(6);
  // The gradients of the recurrence's operands.
  ir::Builder& builder = *dy.builder;
  const std::vector<ir::Value*> both =
      builder.Ops("linear_recurrence_grad", {dh.value, decay.value, h.value}, {{"dim", 1}});
  if (both.size() != 2) return std::vector<Term>(6);
  Term ddecay = {&builder, both[0]};
  const Term dadded = {&builder, both[1]};
  if (in.size() == 7) ddecay = ddecay + AsFirstStep(FirstStep(dadded) * state, steps);
  const Term dexponent = ddecay * decay;
  const Term of_b = SumOver(dadded * OfStates(b), 3);
  return {step * of_b,
          SumOver(dexponent * a, 3) + x * of_b,
          SumOver(dexponent * OfChannels(step), 1),
          SumOver(dadded * OfChannels(step * x), 2),
          SumOver(h * OfChannels(dy), 2),
          SumOver(FirstStep(decay * dadded), 1)};
}

ir::OpDef SelectiveScanGrad() {
  const InputNames names = {"dy", "x", "step", "a", "b", "c", "state"};
  ir::OpDef op;
  op.name = "selective_scan_grad";
  op.traits.computes_in_f32 = true;
  op.doc =
      "The gradients of selective_scan's operands: dx, dstep, da of each sample (B, D, N), db, dc, "
      "dstate. The states are computed again.";
  op.min_inputs = 6;
  op.max_inputs = 7;
  op.num_outputs = 6;
  op.infer_shape = [names](const ir::OpCall& call) -> StatusOr<Types> {
    ZG_RETURN_IF_ERROR(CheckOperands(call, names, 1));
    const TensorType& x = call.inputs[1];
    const Shape& a = call.inputs[3].shape;
    if (call.inputs[0] != x) return Rejected(call, names, "dy is not like x");
    const TensorType state = {DType::kF32, {x.shape.dim(0), a.dim(0), a.dim(1)}};
    return Types{x, x, state, call.inputs[4], call.inputs[5], state};
  };
  op.sbp_signatures = [](const ir::OpCall& call) {
    ir::SbpSignature by_sample = {{kBySample, kBySample, kBySample, B, kBySample, kBySample},
                                  NdSbp(6, kBySample)};
    ir::SbpSignature by_channel = {{kByChannel, kByChannel, kByChannel, Sbp::S(0), B, B},
                                   {kByChannel, kByChannel, Sbp::S(1), P, P, Sbp::S(1)}};
    ir::SbpSignature by_term = {{P, B, B, B, B, B}, NdSbp(6, P)};
    if (call.inputs.size() == 7) {
      by_sample.inputs.push_back(kBySample);
      by_channel.inputs.push_back(Sbp::S(1));
      by_term.inputs.push_back(B);
    }
    return Signatures{by_sample, by_channel, by_term};
  };
  op.gradient = GradientOf(GradFormula);
  op.flops = [](const ir::OpCall& call) {
    return 30 * call.inputs[1].shape.num_elements() * call.inputs[3].shape.dim(1);
  };
  return op;
}

}  // namespace

void RegisterSelectiveScanOps(ir::OpRegistry& registry) {
  registry.Register(SelectiveScan());
  registry.Register(SelectiveScanGrad());
}

}  // namespace zg
