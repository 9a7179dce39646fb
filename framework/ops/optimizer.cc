// The optimizers' update rules, as PyTorch defines them: one node updates one parameter p (or one
// shard of a bucket) and its state in place. The learning rate is `lr` times the schedule's factor
// for the step.
//
// An optional last input, control f32[2] (op update_control), holds a factor on the gradient, which
// is applied before anything else, and the number of the update for Adam's bias correction. A
// factor of exactly 0 leaves parameter and state as they are.
#include <limits>

#include "framework/ir/op_registry.h"
#include "framework/ops/op_rules.h"

namespace zg {
namespace {

using Types = std::vector<TensorType>;

// Of a double attribute: 0 <= value < end.
struct Limit {
  const char* name;
  double end;
};

constexpr double kUnbounded = std::numeric_limits<double>::infinity();

// p, g and the states are of one shape and f32, but the gradient may be in 16 bits; behind them
// comes the control if there is one.
Status CheckInputs(const ir::OpCall& call, const InputNames& names) {
  ir::OpCall tensors = call;
  tensors.inputs.resize(names.size());
  if (tensors.inputs[0].dtype != DType::kF32) return Rejected(tensors, names, "p is not f32");
  if (IsFloat(tensors.inputs[1].dtype)) tensors.inputs[1].dtype = DType::kF32;
  ZG_RETURN_IF_ERROR(CheckAllAlike(tensors, names));
  if (call.inputs.size() == names.size() || call.inputs.back() == TensorType{DType::kF32, {2}}) {
    return Status::Ok();
  }
  return InvalidArgument("{}: control is {}, expected f32[2]", call.op->name,
                         call.inputs.back().ToString());
}

// `names` are p, g and the states; the outputs are the new p and states, each in the memory of the
// old one.
ir::OpDef Update(std::string name, std::string doc, InputNames names, std::vector<Limit> limits,
                 int64_t flops_per_element) {
  ir::OpDef op;
  op.name = std::move(name);
  op.doc = std::move(doc);
  op.min_inputs = static_cast<int>(names.size());
  op.max_inputs = op.min_inputs + 1;
  op.num_outputs = op.min_inputs - 1;
  op.traits.kind = ir::OpKind::kUpdate;
  for (const Limit& limit : limits) op.attributes.push_back({limit.name, 0.0, true});
  op.infer_shape = [names, limits](const ir::OpCall& call) -> StatusOr<Types> {
    ZG_RETURN_IF_ERROR(CheckInputs(call, names));
    for (const Limit& limit : limits) {
      ZG_RETURN_IF_ERROR(CheckRange(call, limit.name, limit.end));
    }
    return Types(call.op->num_outputs, call.inputs[0]);
  };
  op.sbp_signatures = [](const ir::OpCall& call) {
    std::vector<ir::SbpSignature> signatures = SplitAnyDim(call);
    const bool has_control = static_cast<int>(call.inputs.size()) > call.op->min_inputs;
    for (ir::SbpSignature& signature : signatures) {
      if (has_control) signature.inputs.back() = Sbp::B();
    }
    return signatures;
  };
  op.not_differentiable = "an update ends the step";
  op.aliases = [](const ir::OpCall& call) {
    std::vector<ir::AliasRule> rules;
    for (int output = 0; output < call.op->num_outputs; ++output) {
      ir::AliasRule rule;
      rule.kind = ir::AliasRule::Kind::kOutputInsideInput;
      rule.input = output == 0 ? 0 : output + 1;  // input 1 is the gradient
      rule.output = output;
      rules.push_back(rule);
    }
    return rules;
  };
  op.flops = [flops_per_element](const ir::OpCall& call) {
    return flops_per_element * call.inputs[0].shape.num_elements();
  };
  return op;
}

ir::OpDef SgdUpdate() {
  return Update("sgd_update", "p -= lr (g + weight_decay p).", {"p", "g"},
                {{"lr", kUnbounded}, {"weight_decay", kUnbounded}}, 4);
}

ir::OpDef SgdMomentumUpdate() {
  ir::OpDef op =
      Update("sgd_momentum_update",
             "h = g + weight_decay p; m = momentum m + h; p -= lr m, or lr (h + momentum m) "
             "with `nesterov`. m starts as zeros.",
             {"p", "g", "m"},
             {{"lr", kUnbounded}, {"momentum", kUnbounded}, {"weight_decay", kUnbounded}}, 6);
  op.attributes.push_back({"nesterov", false});
  return op;
}

ir::OpDef AdamUpdate() {
  ir::OpDef op = Update(
      "adam_update",
      "Adam (arXiv 1412.6980, algorithm 1) at step t: m = beta1 m + (1 - beta1) g; v = beta2 v + "
      "(1 - beta2) g^2; p -= lr (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + epsilon). Before "
      "that, weight_decay p is added to g, or with `decoupled` lr weight_decay p is taken from p.",
      {"p", "g", "m", "v"},
      {{"lr", kUnbounded},
       {"beta1", 1.0},
       {"beta2", 1.0},
       {"epsilon", kUnbounded},
       {"weight_decay", kUnbounded}},
      14);
  op.attributes.push_back({"decoupled", false, true});
  return op;
}

}  // namespace

void RegisterOptimizerOps(ir::OpRegistry& registry) {
  registry.Register(SgdUpdate());
  registry.Register(SgdMomentumUpdate());
  registry.Register(AdamUpdate());
}

}  // namespace zg
