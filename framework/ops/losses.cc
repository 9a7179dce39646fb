// Scalar losses and their gradients. `divisor` is the number of averaged elements of one
// micro-batch: cutting the batch over ranks gives terms whose sum is the sum of the micro-batches'
// means.
#include "framework/ir/op_registry.h"
#include "framework/ir/parts_context.h"
#include "framework/ops/formula_gradient.h"
#include "framework/ops/op_names.h"
#include "framework/ops/op_rules.h"

namespace zg {
namespace {

using Types = std::vector<TensorType>;
using Signatures = std::vector<ir::SbpSignature>;

const Sbp B = Sbp::B();
const Sbp P = Sbp::P();

TensorType Scalar() { return {DType::kF32, Shape{}}; }

Status CheckDivisor(const ir::OpCall& call) {
  const double divisor = call.attributes.Float("divisor");
  if (divisor > 0.0) return Status::Ok();
  return InvalidArgument("{}: divisor is {}, expected divisor > 0", call.op->name, divisor);
}

// A 16-bit prediction may have a target in f32.
Status CheckPair(const ir::OpCall& call, const InputNames& names, const TensorType& prediction,
                 const TensorType& target) {
  if (target.dtype != DType::kF32) {
    ZG_RETURN_IF_ERROR(CheckOneFloatDType(call, names, {"prediction", "target"}));
  }
  ZG_RETURN_IF_ERROR(CheckOneFloatDType(call, names, {"prediction"}));
  if (prediction.shape != target.shape) {
    return Rejected(call, names, "shapes of prediction and target differ");
  }
  return Status::Ok();
}

ir::OpDef MseLoss() {
  const InputNames names = {"prediction", "target"};
  ir::OpDef op;
  op.name = "mse_loss";
  op.doc = "loss = sum of (prediction - target)^2 / divisor.";
  op.min_inputs = op.max_inputs = 2;
  op.attributes = {{"divisor", 1.0, true}};
  op.traits.is_loss = true;
  op.infer_shape = [names](const ir::OpCall& call) -> StatusOr<Types> {
    ZG_RETURN_IF_ERROR(CheckPair(call, names, call.inputs[0], call.inputs[1]));
    ZG_RETURN_IF_ERROR(CheckDivisor(call));
    return Types{Scalar()};
  };
  op.sbp_signatures = [](const ir::OpCall& call) {
    Signatures signatures;
    for (int dim = 0; dim < call.inputs[0].shape.num_dims(); ++dim) {
      signatures.push_back({{Sbp::S(dim), Sbp::S(dim)}, {P}});
    }
    return signatures;
  };
  op.gradient = [](ir::GradientContext& context) {
    if (!context.needs(0) && !context.needs(1)) return Status::Ok();
    ir::Builder& builder = context.builder();
    ir::Value* gradient =
        builder.Op("mse_loss_grad", {context.output_gradient(), context.input(0), context.input(1)},
                   context.node().attributes);
    if (context.needs(0)) context.set_input_gradient(0, gradient);
    if (context.needs(1) && gradient != nullptr) {
      ir::Value* of_target = builder.Op("scale", {gradient}, {{"factor", -1.0}});
      const DType dtype = context.input(1)->type.dtype;
      if (of_target != nullptr && of_target->type.dtype != dtype) {
        of_target = builder.Op("cast", {of_target}, {{"dtype", dtype}});
      }
      context.set_input_gradient(1, of_target);
    }
    return Status::Ok();
  };
  op.flops = [](const ir::OpCall& call) { return 3 * call.inputs[0].shape.num_elements(); };
  return op;
}

ir::OpDef MseLossGrad() {
  const InputNames names = {"dloss", "prediction", "target"};
  ir::OpDef op;
  op.name = "mse_loss_grad";
  op.traits.f32_inputs = {0};
  op.doc = "dprediction = dloss 2 (prediction - target) / divisor.";
  op.min_inputs = op.max_inputs = 3;
  op.attributes = {{"divisor", 1.0, true}};
  op.infer_shape = [names](const ir::OpCall& call) -> StatusOr<Types> {
    if (call.inputs[0] != Scalar()) return Rejected(call, names, "dloss is not f32[]");
    ZG_RETURN_IF_ERROR(CheckPair(call, names, call.inputs[1], call.inputs[2]));
    ZG_RETURN_IF_ERROR(CheckDivisor(call));
    return Types{call.inputs[1]};
  };
  op.sbp_signatures = [](const ir::OpCall& call) {
    Signatures signatures;
    for (int dim = 0; dim < call.inputs[1].shape.num_dims(); ++dim) {
      signatures.push_back({{B, Sbp::S(dim), Sbp::S(dim)}, {Sbp::S(dim)}});
    }
    signatures.push_back({{P, B, B}, {P}});
    return signatures;
  };
  op.gradient = GradientOf([](const std::vector<Term>& in, const ir::Node& node) {
    const double factor = 2.0 / node.attributes.Float("divisor");
    return std::vector<Term>{factor * (in[0] * (in[1] - in[2]))};
  });
  op.aliases = [](const ir::OpCall&) { return InPlaceOf({1, 2}); };
  op.flops = [](const ir::OpCall& call) { return 2 * call.inputs[1].shape.num_elements(); };
  return op;
}

// Targets are class indices, one for each row of logits.
Status CheckTargets(const ir::OpCall& call, const InputNames& names, const TensorType& logits,
                    const TensorType& targets) {
  if (logits.shape.num_dims() < 1) return Rejected(call, names, "logits have no dims");
  if (targets.dtype != DType::kI64) return Rejected(call, names, "targets are not i64");
  if (targets.shape != WithoutLastDim(logits.shape)) {
    return Rejected(call, names, "targets are not one index per row of logits");
  }
  return CheckDivisor(call);
}

ir::OpDef SoftmaxCrossEntropy() {
  const InputNames names = {"logits", "targets"};
  ir::OpDef op;
  op.name = op_names::kSoftmaxCrossEntropy;
  op.doc =
      "loss = sum over rows of (log_sum_exp - logits[..,target]) / divisor, with log_sum_exp = "
      "log(sum_v exp(logits[..,v])), output 1. A target outside [0, V) ends the job.";
  op.min_inputs = op.max_inputs = 2;
  op.num_outputs = 2;
  op.traits.is_loss = true;
  op.attributes = {{"divisor", 1.0, true}};
  op.infer_shape = [names](const ir::OpCall& call) -> StatusOr<Types> {
    ZG_RETURN_IF_ERROR(CheckOneFloatDType(call, names, {"logits"}));
    ZG_RETURN_IF_ERROR(CheckTargets(call, names, call.inputs[0], call.inputs[1]));
    return Types{Scalar(), {DType::kF32, call.inputs[1].shape}};
  };
  op.sbp_signatures = [](const ir::OpCall& call) {
    Signatures signatures;
    for (int dim = 0; dim < call.inputs[1].shape.num_dims(); ++dim) {
      signatures.push_back({{Sbp::S(dim), Sbp::S(dim)}, {P, Sbp::S(dim)}});
    }
    return signatures;
  };
  op.gradient = [](ir::GradientContext& context) {
    if (!context.needs(0)) return Status::Ok();
    ir::Builder& builder = context.builder();
    if (context.output_gradient() != nullptr) {
      context.set_input_gradient(0, builder.Op(op_names::kSoftmaxCrossEntropyGrad,
                                               {context.output_gradient(), context.input(0),
                                                context.input(1), context.output(1)},
                                               context.node().attributes));
    }
    if (context.output_gradient(1) != nullptr) {  // for second derivatives
      const Term logits = As(DType::kF32, {&builder, context.input(0)});
      const Term log_sum_exp = AsColumn({&builder, context.output(1)});
      AddToInputGradient(
          context, 0, AsColumn({&builder, context.output_gradient(1)}) * Exp(logits - log_sum_exp));
    }
    return Status::Ok();
  };
  // For logits that are split by classes: the sums of each part, from which the loss follows.
  op.in_parts = [](ir::PartsContext& context) {
    const ir::Node& node = context.node();
    if (context.input_sbp(0) != Sbp::S(node.inputs[1]->type.shape.num_dims())) return Status::Ok();
    ir::Value* sums = context.builder().Op(
        "class_part_sums", {node.inputs[0], node.inputs[1], context.Part()},
        {{"parts", int64_t{context.num_parts()}}}, node.outputs[1]->name + ".parts");
    const std::vector<ir::Value*> outputs =
        context.builder().Ops("cross_entropy_of_parts", {sums}, node.attributes);
    for (int i = 0; i < 2; ++i) context.set_output(i, outputs[i]);
    return Status::Ok();
  };
  op.flops = [](const ir::OpCall& call) { return 4 * call.inputs[0].shape.num_elements(); };
  return op;
}

// The result for dloss = 1 is linear in the probabilities, which alone depend on the logits.
std::vector<Term> CrossEntropyGradFormula(const std::vector<Term>& in, const ir::Node& node) {
  ir::Builder* const builder = in[0].builder;
  std::vector<ir::Value*> inputs;
  for (const Term& input : in) inputs.push_back(input.value);
  inputs[0] = builder->Op("constant", {}, {{"value", 1.0}});
  const Term of_one =
      Stop({builder, builder->Op(op_names::kSoftmaxCrossEntropyGrad, inputs, node.attributes)});
  const Term probabilities = Exp(in[1] - AsColumn(in[3]));
  const double factor = 1.0 / node.attributes.Float("divisor");
  return {in[0] * (of_one + factor * (probabilities - Stop(probabilities)))};
}

ir::OpDef SoftmaxCrossEntropyGrad() {
  const InputNames names = {"dloss", "logits", "targets", "log_sum_exp", "part"};
  ir::OpDef op;
  op.name = op_names::kSoftmaxCrossEntropyGrad;
  op.traits.f32_inputs = {0, 3};
  op.doc =
      "dlogits[..,v] = dloss (exp(logits[..,v] - log_sum_exp) - [v = target]) / divisor; of logits in "
      "parts, for the classes of some of them.";
  op.min_inputs = 4;
  op.max_inputs = 5;
  op.attributes = {{"divisor", 1.0, true}, {"parts", int64_t{1}}};
  op.infer_shape = [names](const ir::OpCall& call) -> StatusOr<Types> {
    ZG_RETURN_IF_ERROR(CheckOneFloatDType(call, names, {"logits"}));
    if (call.inputs[0] != Scalar()) return Rejected(call, names, "dloss is not f32[]");
    ZG_RETURN_IF_ERROR(CheckTargets(call, names, call.inputs[1], call.inputs[2]));
    if (call.inputs[3] != TensorType{DType::kF32, call.inputs[2].shape}) {
      return Rejected(call, names, "log_sum_exp is not one f32 per row of logits");
    }
    ZG_RETURN_IF_ERROR(CheckPart(call, names, 4, call.inputs[1].shape.dim(-1)));
    return Types{call.inputs[1]};
  };
  op.sbp_signatures = [](const ir::OpCall& call) {
    const int last = call.inputs[2].shape.num_dims();
    Signatures signatures;
    for (int dim = 0; dim < last; ++dim) {
      const Sbp split = Sbp::S(dim);
      signatures.push_back({{B, split, split, split}, {split}});
    }
    signatures.push_back({{P, B, B, B}, {P}});
    if (call.inputs.size() == 4) return signatures;
    for (ir::SbpSignature& signature : signatures) signature.inputs.push_back(B);
    signatures.push_back({{B, Sbp::S(last), B, B, Sbp::S(0)}, {Sbp::S(last)}});
    return signatures;
  };
  op.in_parts = [](ir::PartsContext& context) {
    std::vector<ir::Value*> inputs = context.node().inputs;
    if (inputs.size() == 5 || context.input_sbp(1) != Sbp::S(inputs[2]->type.shape.num_dims())) {
      return Status::Ok();
    }
    inputs.push_back(context.Part());
    context.set_output(
        0, context.builder().Op(op_names::kSoftmaxCrossEntropyGrad, inputs, context.WithParts()));
    return Status::Ok();
  };
  op.gradient = GradientOf(CrossEntropyGradFormula);
  op.aliases = [](const ir::OpCall&) { return InPlaceOf({1}); };
  op.flops = [](const ir::OpCall& call) { return 4 * call.inputs[1].shape.num_elements(); };
  return op;
}

ir::OpDef SoftmaxCrossEntropyWithGrad() {
  const InputNames names = {"dloss", "logits", "targets"};
  ir::OpDef op;
  op.name = op_names::kSoftmaxCrossEntropyWithGrad;
  op.doc =
      "The loss of softmax_cross_entropy and, as output 1, the dlogits of softmax_cross_entropy_grad: "
      "both in one reading of the logits.";
  op.min_inputs = op.max_inputs = 3;
  op.num_outputs = 2;
  op.attributes = {{"divisor", 1.0, true}};
  op.infer_shape = [names](const ir::OpCall& call) -> StatusOr<Types> {
    ZG_RETURN_IF_ERROR(CheckOneFloatDType(call, names, {"logits"}));
    if (call.inputs[0] != Scalar()) return Rejected(call, names, "dloss is not f32[]");
    ZG_RETURN_IF_ERROR(CheckTargets(call, names, call.inputs[1], call.inputs[2]));
    return Types{Scalar(), call.inputs[1]};
  };
  op.sbp_signatures = [](const ir::OpCall& call) {
    Signatures signatures;
    for (int dim = 0; dim < call.inputs[2].shape.num_dims(); ++dim) {
      const Sbp split = Sbp::S(dim);
      signatures.push_back({{B, split, split}, {P, split}});
    }
    return signatures;
  };
  op.not_differentiable = "it is made of a loss and its gradient after build-backward";
  op.aliases = [](const ir::OpCall&) {
    std::vector<ir::AliasRule> rules = InPlaceOf({1});
    rules[0].output = 1;
    return rules;
  };
  op.flops = [](const ir::OpCall& call) { return 8 * call.inputs[1].shape.num_elements(); };
  return op;
}

}  // namespace

void RegisterLossesOps(ir::OpRegistry& registry) {
  registry.Register(MseLoss());
  registry.Register(MseLossGrad());
  registry.Register(SoftmaxCrossEntropy());
  registry.Register(SoftmaxCrossEntropyGrad());
  registry.Register(SoftmaxCrossEntropyWithGrad());
}

}  // namespace zg
