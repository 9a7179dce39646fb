// cast: converts from one dtype to another.
#include "framework/ir/op_registry.h"
#include "framework/ops/op_rules.h"

namespace zg {
namespace {

bool CanCast(DType dtype) {
  return IsFloat(dtype) || dtype == DType::kI64 || dtype == DType::kBool;
}

}  // namespace

void RegisterCastOps(ir::OpRegistry& registry) {
  const InputNames names = {"x"};
  ir::OpDef op;
  op.name = "cast";
  op.traits.kind = ir::OpKind::kCast;
  op.traits.keeps_groups = true;
  op.doc =
      "y = x in `dtype` (f32, bf16, f16, i64 or bool): rounded to the nearest, ties to even; to i64 "
      "towards 0; to bool whether it is not 0. The gradient passes where both are "
      "floating-point.";
  op.attributes = {{"dtype", DType::kF32, true}};
  op.infer_shape = [names](const ir::OpCall& call) -> StatusOr<std::vector<TensorType>> {
    if (!CanCast(call.inputs[0].dtype)) {
      return Rejected(call, names, "expected f32, bf16, f16, i64 or bool");
    }
    const DType dtype = call.attributes.DType("dtype");
    if (!CanCast(dtype)) {
      return InvalidArgument("cast: got dtype {}, expected f32, bf16, f16, i64 or bool",
                             DTypeName(dtype));
    }
    return std::vector<TensorType>{{dtype, call.inputs[0].shape}};
  };
  op.sbp_signatures = SplitAnyDim;  // not terms: a rounded sum is not the sum of rounded terms
  op.gradient = [](ir::GradientContext& context) {
    if (!context.needs(0)) return Status::Ok();
    const DType dtype = context.input(0)->type.dtype;
    if (!IsFloat(dtype) || !IsFloat(context.output(0)->type.dtype)) return Status::Ok();
    context.set_input_gradient(
        0, context.builder().Op("cast", {context.output_gradient()}, {{"dtype", dtype}}));
    return Status::Ok();
  };
  registry.Register(std::move(op));
}

}  // namespace zg
