// cast: from one floating-point dtype to another.
#include "framework/ir/op_registry.h"
#include "framework/ops/op_rules.h"

namespace zg {

void RegisterCastOps(ir::OpRegistry& registry) {
  const InputNames names = {"x"};
  ir::OpDef op;
  op.name = "cast";
  op.traits.kind = ir::OpKind::kCast;
  op.doc = "y = x in `dtype` (f32, bf16 or f16), rounded to the nearest, ties to even.";
  op.attributes = {{"dtype", DType::kF32, true}};
  op.infer_shape = [names](const ir::OpCall& call) -> StatusOr<std::vector<TensorType>> {
    ZG_RETURN_IF_ERROR(CheckOneFloatDType(call, names));
    const DType dtype = call.attributes.DType("dtype");
    if (!IsFloat(dtype)) {
      return InvalidArgument("cast: got dtype {}, expected f32, bf16 or f16", DTypeName(dtype));
    }
    return std::vector<TensorType>{{dtype, call.inputs[0].shape}};
  };
  op.sbp_signatures = SplitAnyDim;  // not of terms: a rounded sum is not the sum of rounded terms
  op.gradient = [](ir::GradientContext& context) {
    if (!context.needs(0)) return Status::Ok();
    const DType dtype = context.input(0)->type.dtype;
    context.set_input_gradient(
        0, context.builder().Op("cast", {context.output_gradient()}, {{"dtype", dtype}}));
    return Status::Ok();
  };
  registry.Register(std::move(op));
}

}  // namespace zg
