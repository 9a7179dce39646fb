#include "framework/ops/update_rules.h"

#include <utility>

#include "framework/ops/op_rules.h"

namespace zg {
namespace {

int NumOutputs(const ir::OpCall& call) {
  if (call.op->num_outputs >= 0) return call.op->num_outputs;
  return static_cast<int>(call.attributes.Ints("results").size());
}

std::vector<ir::SbpSignature> UpdatePlacements(const ir::OpCall& call) {
  const size_t num_outputs = NumOutputs(call);
  std::vector<ir::SbpSignature> signatures;
  for (int dim = 0; dim < call.inputs[0].shape.num_dims(); ++dim) {
    ir::SbpSignature signature = {std::vector<Sbp>(call.inputs.size(), Sbp::S(dim)),
                                  std::vector<Sbp>(num_outputs, Sbp::S(dim))};
    if (call.inputs.size() > num_outputs + 1) signature.inputs.back() = Sbp::B();
    signatures.push_back(std::move(signature));
  }
  return signatures;
}

std::vector<ir::AliasRule> UpdateAliases(const ir::OpCall& call) {
  std::vector<ir::AliasRule> rules;
  for (int output = 0; output < NumOutputs(call); ++output) {
    ir::AliasRule rule;
    rule.kind = ir::AliasRule::Kind::kOutputInsideInput;
    rule.input = output == 0 ? 0 : output + 1;  // input 1 is the gradient
    rule.output = output;
    rules.push_back(rule);
  }
  return rules;
}

}  // namespace

ir::OpDef UpdateOp(std::string name, std::string doc, bool counts) {
  ir::OpDef op;
  op.name = std::move(name);
  op.doc = std::move(doc);
  op.min_inputs = 2;
  op.traits.kind = ir::OpKind::kUpdate;
  op.attributes = {{"lr", 0.0, true}, {"weight_decay", 0.0, true}, {"group", int64_t{0}}};
  if (counts) op.attributes.push_back({"after_updates", int64_t{0}});
  op.sbp_signatures = UpdatePlacements;
  op.not_differentiable = "an update ends the step";
  op.aliases = UpdateAliases;
  return op;
}

StatusOr<std::vector<TensorType>> UpdateTypes(const ir::OpCall& call, int num_states) {
  InputNames names = {"p", "g"};
  constexpr std::string_view kStates[] = {"m", "v", "s", "u"};
  for (int i = 0; i < num_states; ++i) names.push_back(kStates[i]);
  const size_t num_tensors = names.size();
  if (call.inputs.size() != num_tensors && call.inputs.size() != num_tensors + 1) {
    return InvalidArgument("{}: got {} inputs, expected p, g, {} states, and perhaps the control",
                           call.op->name, call.inputs.size(), num_states);
  }
  ir::OpCall tensors = call;
  tensors.inputs.resize(num_tensors);
  if (tensors.inputs[0].dtype != DType::kF32) return Rejected(tensors, names, "p is not f32");
  if (IsFloat(tensors.inputs[1].dtype)) tensors.inputs[1].dtype = DType::kF32;
  ZG_RETURN_IF_ERROR(CheckAllAlike(tensors, names));
  if (call.inputs.size() > num_tensors && call.inputs.back() != TensorType{DType::kF32, {2}}) {
    return InvalidArgument("{}: control is {}, expected f32[2]", call.op->name,
                           call.inputs.back().ToString());
  }
  ZG_RETURN_IF_ERROR(CheckRange(call, "lr"));
  ZG_RETURN_IF_ERROR(CheckRange(call, "weight_decay"));
  return std::vector<TensorType>(num_states + 1, call.inputs[0]);
}

}  // namespace zg
