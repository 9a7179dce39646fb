// The norm of all gradients together, for clipping: exact sums of squares per bucket, from which
// the control of the update nodes is computed. guarded_update_control skips updates that are not
// finite; its state starts as zeros. If the loss of a step is a weighted mean, gradients are those
// of its sum, and the weight, a scalar after the square sums, divides them.
#include "framework/base/exact_sum.h"
#include "framework/ir/op_registry.h"
#include "framework/ops/op_names.h"
#include "framework/ops/op_rules.h"

namespace zg {
namespace {

using Types = std::vector<TensorType>;

const TensorType kWeight = {DType::kF32, Shape{}};

TensorType SumType() { return {DType::kI64, Shape{kExactSumWords}}; }

ir::OpDef SquareSum() {
  const InputNames names = {"g"};
  ir::OpDef op;
  op.name = "square_sum";
  op.doc =
      "The sum of g^2 over a flat gradient, exact in the form of ExactSum. Its terms are sums "
      "of 16 consecutive squares, added in a fixed order, so that it is the same for every way of "
      "cutting g at multiples of 16 elements.";
  op.infer_shape = [names](const ir::OpCall& call) -> StatusOr<Types> {
    const TensorType& g = call.inputs[0];
    if (!IsFloat(g.dtype) || g.shape.num_dims() < 1 || g.shape.num_dims() > 2) {
      return Rejected(call, names, "g is not a flat floating-point value, or several parts of one");
    }
    if (g.shape.num_elements() > kSquareSumTermElements * kExactSumMaxTerms) {
      return Rejected(call, names, "g has more than 2^35 elements");
    }
    return Types{SumType()};
  };
  op.sbp_signatures = [](const ir::OpCall& call) {
    std::vector<ir::SbpSignature> signatures;
    for (int dim = 0; dim < call.inputs[0].shape.num_dims(); ++dim) {
      signatures.push_back({{Sbp::S(dim)}, {Sbp::P()}});
    }
    return signatures;
  };
  op.not_differentiable = "gradients of gradients are not supported";
  op.flops = [](const ir::OpCall& call) { return 2 * call.inputs[0].shape.num_elements(); };
  return op;
}

Status CheckSums(const ir::OpCall& call, size_t num_sums) {
  for (size_t i = 0; i < num_sums; ++i) {
    if (call.inputs[i] == SumType()) continue;
    return InvalidArgument("{}: input {} is {}, expected a square sum, {}", call.op->name, i,
                           call.inputs[i].ToString(), SumType().ToString());
  }
  return Status::Ok();
}

ir::OpDef AddSquareSums() {
  ir::OpDef op;
  op.name = "add_square_sums";
  op.doc = "The square sum of all that the inputs are square sums of, with its digits carried.";
  op.max_inputs = -1;
  op.infer_shape = [](const ir::OpCall& call) -> StatusOr<Types> {
    ZG_RETURN_IF_ERROR(CheckSums(call, call.inputs.size()));
    return Types{SumType()};
  };
  op.sbp_signatures = [](const ir::OpCall& call) -> std::vector<ir::SbpSignature> {
    return {{std::vector<Sbp>(call.inputs.size(), Sbp::P()), {Sbp::P()}}};
  };
  op.not_differentiable = "gradients of gradients are not supported";
  return op;
}

ir::OpDef UpdateControl() {
  ir::OpDef op;
  op.name = op_names::kUpdateControl;
  op.doc =
      "From the square sums of all gradients: norm, output 1, is the square root of their sum, and "
      "control, output 0, is {factor on the gradient, number of the update, the first is 1}. "
      "factor = min(1, max_norm / (norm + 1e-6)), never 0; 1 when max_norm is 0; NaN when max_norm "
      "is not 0 and norm is not finite. `weighted`: the last input is a weight, by which norm and "
      "factor are divided; there may be no square sums then.";
  op.max_inputs = -1;
  op.num_outputs = 2;
  op.attributes = {{"max_norm", 0.0}, {"weighted", false}};
  op.infer_shape = [](const ir::OpCall& call) -> StatusOr<Types> {
    const size_t num_sums = call.inputs.size() - (call.attributes.Bool("weighted") ? 1 : 0);
    ZG_RETURN_IF_ERROR(CheckSums(call, num_sums));
    if (num_sums < call.inputs.size() && call.inputs.back() != kWeight) {
      return InvalidArgument("update_control: the weight is {}, expected {}",
                             call.inputs.back().ToString(), kWeight.ToString());
    }
    ZG_RETURN_IF_ERROR(CheckRange(call, "max_norm"));
    return Types{{DType::kF32, Shape{2}}, {DType::kF32, Shape{}}};
  };
  op.not_differentiable = "an update ends the step";
  return op;
}

ir::OpDef GuardedUpdateControl() {
  ir::OpDef op;
  op.name = op_names::kGuardedUpdateControl;
  op.doc =
      "update_control that leaves out updates that are not finite. The inputs are square sums, "
      "then any number of scalars such as the loss, and last the state {updates done, updates left "
      "out in a row}, whose next value is output 2. When a gradient or scalar is infinite or NaN, "
      "the factor is 0, which changes no parameter. More than max_skipped in a row end the job. "
      "`weighted`: the first scalar is the weight.";
  op.min_inputs = 2;
  op.max_inputs = -1;
  op.num_outputs = 3;
  op.attributes = {{"max_norm", 0.0}, {"max_skipped", int64_t{24}}, {"weighted", false}};
  op.infer_shape = [](const ir::OpCall& call) -> StatusOr<Types> {
    const TensorType scalar = {DType::kF32, Shape{}};
    const TensorType state = {DType::kF32, Shape{2}};
    bool may_be_sum = true;  // until the first scalar
    for (size_t i = 0; i + 1 < call.inputs.size(); ++i) {
      if (may_be_sum && call.inputs[i] == SumType()) continue;
      may_be_sum = i == 0;
      if (!may_be_sum && call.inputs[i] == scalar) continue;
      return InvalidArgument("guarded_update_control: input {} is {}, expected {}", i,
                             call.inputs[i].ToString(),
                             (may_be_sum ? SumType() : scalar).ToString());
    }
    if (call.inputs.back() != state) {
      return InvalidArgument("guarded_update_control: the state is {}, expected {}",
                             call.inputs.back().ToString(), state.ToString());
    }
    if (call.attributes.Bool("weighted") && call.inputs[call.inputs.size() - 2] != scalar) {
      return InvalidArgument("guarded_update_control: it is `weighted` and has no scalar");
    }
    ZG_RETURN_IF_ERROR(CheckRange(call, "max_norm"));
    return Types{{DType::kF32, Shape{2}}, scalar, state};
  };
  op.not_differentiable = "an update ends the step";
  return op;
}

}  // namespace

void RegisterGradientNormOps(ir::OpRegistry& registry) {
  registry.Register(SquareSum());
  registry.Register(AddSquareSums());
  registry.Register(UpdateControl());
  registry.Register(GuardedUpdateControl());
}

}  // namespace zg
