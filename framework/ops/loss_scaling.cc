// Dynamic loss scaling (Micikevicius et al., arXiv 1710.03740, section 3.2), which keeps f16
// gradients out of the denormal range: backward multiplies the loss by 2^k, and the update
// multiplies the gradients by 2^-k. k falls after a step with an infinite gradient, which changes
// nothing else, and rises after many steps without one.
//
// Its state is f32[4], zeros at first: {k - initial_exponent, steps since k changed, updates done,
// steps skipped in a row}.
#include "framework/base/exact_sum.h"
#include "framework/ir/op_registry.h"
#include "framework/ops/op_names.h"
#include "framework/ops/op_rules.h"

namespace zg {
namespace {

using Types = std::vector<TensorType>;

const ir::AttributeDef kInitialExponent = {"initial_exponent", int64_t{16}};
const TensorType kState = {DType::kF32, Shape{4}};
const TensorType kWeight = {DType::kF32, Shape{}};
const TensorType kSquareSum = {DType::kI64, Shape{kExactSumWords}};

ir::OpDef LossSeed() {
  const InputNames names = {"state"};
  ir::OpDef op;
  op.name = "loss_seed";
  op.doc = "value 2^k, where backward begins; k is the loss scaler's.";
  op.attributes = {{"value", 1.0, true}, kInitialExponent};
  op.infer_shape = [names](const ir::OpCall& call) -> StatusOr<Types> {
    if (call.inputs[0] != kState) return Rejected(call, names, "state is not f32[4]");
    return Types{{DType::kF32, Shape{}}};
  };
  op.not_differentiable = "backward begins here";
  return op;
}

ir::OpDef ScaledUpdateControl() {
  ir::OpDef op;
  op.name = op_names::kScaledUpdateControl;
  op.doc =
      "update_control for gradients that count 2^k times: the inputs are the square sums and, "
      "last, "
      "the loss scaler's state; output 2 is its next state. When a gradient is infinite or NaN, "
      "the "
      "factor is 0, which changes no parameter, and k falls by 1; it rises by 1 after "
      "growth_interval updates in a row. More than max_skipped steps left out in a row end the "
      "job. `weighted`: behind the square sums is the weight.";
  op.min_inputs = 2;
  op.max_inputs = -1;
  op.num_outputs = 3;
  op.attributes = {{"max_norm", 0.0},
                   {"growth_interval", int64_t{2000}},
                   {"max_skipped", int64_t{24}},
                   {"weighted", false},
                   kInitialExponent};
  op.infer_shape = [](const ir::OpCall& call) -> StatusOr<Types> {
    const size_t behind_sums = call.attributes.Bool("weighted") ? 2 : 1;
    for (size_t i = 0; i < call.inputs.size(); ++i) {
      const size_t from_end = call.inputs.size() - i;
      const TensorType& expected = from_end > behind_sums ? kSquareSum
                                   : from_end == 1        ? kState
                                                          : kWeight;
      if (call.inputs[i] == expected) continue;
      return InvalidArgument("scaled_update_control: input {} is {}, expected {}", i,
                             call.inputs[i].ToString(), expected.ToString());
    }
    ZG_RETURN_IF_ERROR(CheckRange(call, "max_norm"));
    return Types{{DType::kF32, Shape{2}}, {DType::kF32, Shape{}}, kState};
  };
  op.not_differentiable = "an update ends the step";
  return op;
}

}  // namespace

void RegisterLossScalingOps(ir::OpRegistry& registry) {
  registry.Register(LossSeed());
  registry.Register(ScaledUpdateControl());
}

}  // namespace zg
