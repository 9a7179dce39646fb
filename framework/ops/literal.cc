// Tensors whose elements the model spells out: index tables, anchors, weights of classes.
#include <fmt/format.h>

#include "framework/ir/op_registry.h"
#include "framework/ops/op_rules.h"

namespace zg {

void RegisterLiteralOps(ir::OpRegistry& registry) {
  ir::OpDef op;
  op.name = "literal";
  op.traits.kind = ir::OpKind::kConstant;
  op.traits.sinks_to_user = true;
  op.doc =
      "`numbers` in a tensor of this dtype, i64 or f32, and shape. f32 are given by their bits.";
  op.min_inputs = op.max_inputs = 0;
  op.attributes = {{"dtype", DType::kF32, true},
                   {"shape", Shape{}, true},
                   {"numbers", std::vector<int64_t>{}, true}};
  op.infer_shape = [](const ir::OpCall& call) -> StatusOr<std::vector<TensorType>> {
    const TensorType type = {call.attributes.DType("dtype"), call.attributes.Shape("shape")};
    const auto count = static_cast<int64_t>(call.attributes.Ints("numbers").size());
    if (type.dtype != DType::kF32 && type.dtype != DType::kI64) {
      return InvalidArgument("literal: got {}, expected f32 or i64", type.ToString());
    }
    if (type.shape.IsValid() && type.shape.num_elements() == count)
      return std::vector<TensorType>{type};
    return InvalidArgument("literal: got {} numbers for {}, expected one per element", count,
                           type.ToString());
  };
  op.not_differentiable = "a source has no inputs";
  registry.Register(std::move(op));
}

}  // namespace zg
