#include "framework/ops/addend.h"

#include <utility>

#include "framework/ir/builder.h"

namespace zg {
namespace {

constexpr char kAdds[] = "adds";

Status CheckAddend(const ir::OpCall& call, const TensorType& result) {
  if (call.inputs.back() == result) return Status::Ok();
  return InvalidArgument("{}: the addend is {}, expected the type of the result, {}", call.op->name,
                         call.inputs.back().ToString(), result.ToString());
}

}  // namespace

int AddendOf(const ir::OpCall& call) {
  const bool adds = call.attributes.Has(kAdds) && call.attributes.Bool(kAdds);
  return adds ? static_cast<int>(call.inputs.size()) - 1 : -1;
}

ir::OpCall WithoutAddend(ir::OpCall call) {
  if (AddendOf(call) < 0) return call;
  call.inputs.pop_back();
  call.attributes.Set(kAdds, false);
  return call;
}

ir::OpDef WithAddend(ir::OpDef op) {
  const ir::OpDef plain = op;
  op.doc += " With adds, the last input is added to output 0.";
  op.max_inputs = plain.max_inputs + 1;
  op.attributes.push_back({kAdds, false});
  op.traits.takes_addend = true;
  op.infer_shape = [plain](const ir::OpCall& call) -> StatusOr<std::vector<TensorType>> {
    const ir::OpCall rest = WithoutAddend(call);
    const int num_inputs = static_cast<int>(rest.inputs.size());
    if (num_inputs < plain.min_inputs || num_inputs > plain.max_inputs) {
      return InvalidArgument("{}: got {} inputs beside an addend, expected {} to {}", call.op->name,
                             num_inputs, plain.min_inputs, plain.max_inputs);
    }
    ZG_ASSIGN_OR_RETURN(std::vector<TensorType> types, plain.infer_shape(rest));
    if (AddendOf(call) >= 0) ZG_RETURN_IF_ERROR(CheckAddend(call, types[0]));
    return types;
  };
  op.sbp_signatures = [plain](const ir::OpCall& call) {
    std::vector<ir::SbpSignature> signatures = plain.sbp_signatures(WithoutAddend(call));
    if (AddendOf(call) < 0) return signatures;
    for (ir::SbpSignature& signature : signatures) signature.inputs.push_back(signature.outputs[0]);
    return signatures;
  };
  if (plain.gradient != nullptr) {
    op.gradient = [plain](ir::GradientContext& context) -> Status {
      if (!context.node().attributes.Bool(kAdds)) return plain.gradient(context);
      const int addend = context.num_inputs() - 1;
      ir::GradientContext rest = context.WithoutLastInput();
      ZG_RETURN_IF_ERROR(plain.gradient(rest));
      for (int i = 0; i < addend; ++i) context.set_input_gradient(i, rest.input_gradients()[i]);
      if (context.needs(addend)) context.set_input_gradient(addend, context.output_gradient());
      return Status::Ok();
    };
  }
  op.flops = [plain](const ir::OpCall& call) {
    const int64_t additions = AddendOf(call) < 0 ? 0 : call.inputs.back().shape.num_elements();
    return plain.flops(WithoutAddend(call)) + additions;
  };
  return op;
}

}  // namespace zg
