// Ops that give a graph its structure rather than compute: the sources and destinations of values,
// and their place in buckets (bucket_ops.h).
#include "framework/ir/op_registry.h"
#include "framework/ops/bucket_ops.h"
#include "framework/ops/op_rules.h"

namespace zg {
namespace {

using Types = std::vector<TensorType>;

StatusOr<Types> TypeFromAttributes(const ir::OpCall& call) {
  return Types{{call.attributes.DType("dtype"), call.attributes.Shape("shape")}};
}

// Any placement of the operands, as long as it is the same for all of them.
std::vector<ir::SbpSignature> SamePlacement(const ir::OpCall& call) {
  std::vector<ir::SbpSignature> signatures;
  const auto add = [&](Sbp sbp) {
    signatures.push_back(
        {std::vector<Sbp>(call.inputs.size(), sbp), std::vector<Sbp>(call.op->num_outputs, sbp)});
  };
  for (int dim = 0; dim < call.inputs[0].shape.num_dims(); ++dim) add(Sbp::S(dim));
  add(Sbp::P());
  return signatures;
}

StatusOr<Types> VariableType(const ir::OpCall& call) {
  const Role role = call.attributes.Role("role");
  if (role != Role::kParameter && !call.attributes.Bool("trainable")) {
    return InvalidArgument(
        "variable: got trainable=false with the role {}, expected it with parameters only",
        EnumName(role));
  }
  return TypeFromAttributes(call);
}

ir::OpDef Variable() {
  ir::OpDef op;
  op.name = "variable";
  op.traits.kind = ir::OpKind::kVariable;
  op.doc =
      "Storage that outlives a step: parameters, optimizer state, accumulators. Training leaves a "
      "parameter alone that is not `trainable`.";
  op.min_inputs = op.max_inputs = 0;
  op.attributes = {{"dtype", DType::kF32, true},
                   {"shape", Shape{}, true},
                   {"role", Role::kParameter},
                   {"trainable", true},
                   {"stage", int64_t{3}},  // ZeRO's, up to which the contents are sharded
                   {"split", NdSbp{}}};    // the split beside ZeRO's, by mesh axis: B or S(dim)
  op.infer_shape = VariableType;
  op.not_differentiable = "a source has no inputs";
  return op;
}

ir::OpDef Input() {
  ir::OpDef op;
  op.name = "input";
  op.traits.kind = ir::OpKind::kInput;
  op.traits.sinks_to_user = true;
  op.doc =
      "Data that the user feeds before each run; `placement` says how it lies on every mesh axis "
      "named data. `once` names the program that computes what follows from it, once for several runs "
      "(hoist-inputs).";
  op.min_inputs = op.max_inputs = 0;
  op.attributes = {{"name", std::string(), true},
                   {"dtype", DType::kF32, true},
                   {"shape", Shape{}, true},
                   {"placement", Sbp::S(0)},
                   {"once", std::string()}};
  op.infer_shape = TypeFromAttributes;
  op.not_differentiable = "a source has no inputs";
  return op;
}

ir::OpDef Output() {
  ir::OpDef op;
  op.name = "output";
  op.traits.kind = ir::OpKind::kOutput;
  op.traits.has_side_effect = true;
  op.doc =
      "Hands a value to the user under a name: whole, or of S(0) along data axes each rank its part.";
  op.num_outputs = 0;
  op.attributes = {{"name", std::string(), true}};
  op.sbp_signatures = [](const ir::OpCall& call) -> std::vector<ir::SbpSignature> {
    if (call.inputs[0].shape.num_dims() == 0) return {};
    return {{{Sbp::S(0)}, {}}};
  };
  op.infer_shape = [](const ir::OpCall&) -> StatusOr<Types> { return Types{}; };
  op.not_differentiable = "nothing comes out";
  return op;
}

ir::OpDef Constant() {
  ir::OpDef op;
  op.name = "constant";
  op.traits.kind = ir::OpKind::kConstant;
  op.traits.sinks_to_user = true;
  op.doc = "The scalar `value`.";
  op.min_inputs = op.max_inputs = 0;
  op.attributes = {{"value", 0.0, true}};
  op.infer_shape = [](const ir::OpCall&) -> StatusOr<Types> {
    return Types{{DType::kF32, Shape{}}};
  };
  op.not_differentiable = "a source has no inputs";
  return op;
}

ir::OpDef Assign() {
  ir::OpDef op;
  op.name = "assign";
  op.traits.kind = ir::OpKind::kAssign;
  op.traits.has_side_effect = true;
  op.doc = "The variable (input 0) holds the value (input 1) from here on.";
  op.min_inputs = op.max_inputs = 2;
  op.num_outputs = 0;
  op.infer_shape = [](const ir::OpCall& call) -> StatusOr<Types> {
    if (call.inputs[0] != call.inputs[1]) {
      return InvalidArgument("assign: got a value of type {}, expected the variable's type {}",
                             call.inputs[1].ToString(), call.inputs[0].ToString());
    }
    return Types{};
  };
  op.sbp_signatures = SamePlacement;
  op.not_differentiable = "nothing comes out";
  return op;
}

ir::OpDef ParameterGradient() {
  ir::OpDef op;
  op.name = "parameter_gradient";
  op.traits.kind = ir::OpKind::kParameterGradient;
  op.traits.has_side_effect = true;
  op.doc =
      "Says that input 1 is the gradient of the loss for the parameter in input 0; consumed by "
      "append-update.";
  op.min_inputs = op.max_inputs = 2;
  op.num_outputs = 0;
  op.infer_shape = [](const ir::OpCall&) -> StatusOr<Types> { return Types{}; };
  op.not_differentiable = "nothing comes out";
  return op;
}

ir::OpDef NextValue() {
  ir::OpDef op;
  op.name = "next_value";
  op.traits.kind = ir::OpKind::kNextValue;
  op.traits.has_side_effect = true;
  op.doc =
      "Says that the buffer in input 0 holds input 1 after the step; consumed by "
      "accumulate-results.";
  op.min_inputs = op.max_inputs = 2;
  op.num_outputs = 0;
  op.infer_shape = [](const ir::OpCall& call) -> StatusOr<Types> {
    if (call.inputs[0].shape != call.inputs[1].shape || !IsFloat(call.inputs[1].dtype)) {
      return InvalidArgument("next_value: got a value of type {}, expected the buffer's type {}",
                             call.inputs[1].ToString(), call.inputs[0].ToString());
    }
    return Types{};
  };
  op.not_differentiable = "nothing comes out";
  return op;
}

ir::OpDef OtherWeights() {
  ir::OpDef op;
  op.name = "other_weights";
  op.traits.kind = ir::OpKind::kView;
  op.traits.sinks_to_user = true;
  op.traits.stops_gradient = true;
  op.doc =
      "The weights of a parameter that the section does not read otherwise: in training those for "
      "evaluation, such as a moving average, as constants; in eval programs those that are trained. "
      "Consumed by eval-weights.";
  op.min_inputs = op.max_inputs = 1;
  op.infer_shape = [](const ir::OpCall& call) -> StatusOr<Types> { return Types{call.inputs[0]}; };
  op.sbp_signatures = SamePlacement;
  op.not_differentiable = "training changes the others";
  op.aliases = [](const ir::OpCall&) { return InsideInput(); };
  return op;
}

// S(dim) -> P and back along the data axes, where a rank's part is its own micro-batch.
ir::OpDef MicroBatchView(std::string name, std::string doc) {
  ir::OpDef op;
  op.name = std::move(name);
  op.traits.kind = ir::OpKind::kView;
  op.traits.sinks_to_user = true;
  op.doc = std::move(doc);
  op.attributes = {{"dim", int64_t{0}, true}, {"num_parts", int64_t{1}, true}};
  op.not_differentiable = "it is made after backward is built";
  op.aliases = [](const ir::OpCall&) { return InsideInput(); };
  return op;
}

Status CheckDimAndParts(const ir::OpCall& call) {
  const TensorType& x = call.inputs[0];
  const int64_t dim = call.attributes.Int("dim");
  const int64_t num_parts = call.attributes.Int("num_parts");
  if (dim >= 0 && dim < x.shape.num_dims() && num_parts > 0) return Status::Ok();
  return InvalidArgument("{}: got dim {} in {} parts of x {}, expected a dim that x has",
                         call.op->name, dim, num_parts, x.ToString());
}

Sbp SplitOf(const ir::OpCall& call) { return Sbp::S(static_cast<int>(call.attributes.Int("dim"))); }

ir::OpDef OwnPart() {
  ir::OpDef op = MicroBatchView(
      "own_part",
      "What every micro-batch has of x, which are `num_parts` of them side by side along `dim`.");
  op.infer_shape = [](const ir::OpCall& call) -> StatusOr<Types> {
    ZG_RETURN_IF_ERROR(CheckDimAndParts(call));
    TensorType part = call.inputs[0];
    const int dim = static_cast<int>(call.attributes.Int("dim"));
    const int64_t num_parts = call.attributes.Int("num_parts");
    if (part.shape.dim(dim) % num_parts != 0) {
      return InvalidArgument("own_part: dim {} of x {} does not divide into {} parts", dim,
                             part.ToString(), num_parts);
    }
    part.shape.set_dim(dim, part.shape.dim(dim) / num_parts);
    return Types{part};
  };
  op.sbp_signatures = [](const ir::OpCall& call) {
    std::vector<ir::SbpSignature> signatures = SamePlacement(call);
    signatures.push_back({{SplitOf(call)}, {Sbp::P()}});
    return signatures;
  };
  return op;
}

ir::OpDef JoinedParts() {
  ir::OpDef op = MicroBatchView("joined_parts",
                                "What every one of `num_parts` micro-batches has of x, side by "
                                "side along `dim`.");
  op.infer_shape = [](const ir::OpCall& call) -> StatusOr<Types> {
    ZG_RETURN_IF_ERROR(CheckDimAndParts(call));
    TensorType joined = call.inputs[0];
    const int dim = static_cast<int>(call.attributes.Int("dim"));
    joined.shape.set_dim(dim, SizeProduct(joined.shape.dim(dim), call.attributes.Int("num_parts")));
    return Types{joined};
  };
  op.sbp_signatures = [](const ir::OpCall& call) {
    std::vector<ir::SbpSignature> signatures = SamePlacement(call);
    signatures.push_back({{Sbp::P()}, {SplitOf(call)}});
    return signatures;
  };
  return op;
}

ir::OpDef Accumulate() {
  ir::OpDef op;
  op.name = "accumulate";
  op.traits.kind = ir::OpKind::kAccumulate;
  op.doc =
      "Adds input 1 to the accumulator in input 0; on a step's first micro-batch overwrites it. "
      "With a partial input 1 "
      "the terms of all ranks are folded in, in rank order.";
  op.min_inputs = op.max_inputs = 2;
  op.infer_shape = [](const ir::OpCall& call) -> StatusOr<Types> {
    // Sums are in f32, also for 16-bit terms.
    if (call.inputs[0].dtype != DType::kF32) {
      return InvalidArgument("accumulate: got an accumulator of type {}, expected f32",
                             call.inputs[0].ToString());
    }
    if (call.inputs[0].shape != call.inputs[1].shape || !IsFloat(call.inputs[1].dtype)) {
      return InvalidArgument(
          "accumulate: got a value of type {}, expected the accumulator's type {}",
          call.inputs[1].ToString(), call.inputs[0].ToString());
    }
    return Types{call.inputs[0]};
  };
  op.sbp_signatures = [](const ir::OpCall& call) {
    std::vector<ir::SbpSignature> signatures = SamePlacement(call);
    for (int dim = 0; dim < call.inputs[0].shape.num_dims(); ++dim) {
      signatures.push_back({{Sbp::S(dim), Sbp::P()}, {Sbp::S(dim)}});
    }
    signatures.push_back({{Sbp::B(), Sbp::P()}, {Sbp::B()}});
    return signatures;
  };
  op.not_differentiable = "accumulators are made after backward is built";
  op.aliases = [](const ir::OpCall&) { return InsideInput(); };
  op.flops = [](const ir::OpCall& call) { return call.inputs[0].shape.num_elements(); };
  return op;
}

}  // namespace

void RegisterStructureOps(ir::OpRegistry& registry) {
  registry.Register(Variable());
  registry.Register(Input());
  registry.Register(Output());
  registry.Register(Constant());
  registry.Register(Assign());
  registry.Register(ParameterGradient());
  registry.Register(NextValue());
  registry.Register(OtherWeights());
  registry.Register(BucketViewOp());
  registry.Register(OwnPart());
  registry.Register(JoinedParts());
  registry.Register(BucketPackOp());
  registry.Register(Accumulate());
}

}  // namespace zg
