// The largest or smallest elements along a dim, and their indices.
#include <fmt/format.h>

#include "framework/ir/op_registry.h"
#include "framework/ops/op_rules.h"

namespace zg {

void RegisterTopKOps(ir::OpRegistry& registry) {
  const InputNames names = {"x"};
  ir::OpDef op;
  op.name = "top_k";
  op.traits.keeps_dtype = true;
  op.doc =
      "The k largest elements of x along `dim`, or smallest, in their order, and as output 1 their "
      "indices. Of equal ones the lowest index comes first; NaN comes before every number.";
  op.num_outputs = 2;
  op.attributes = {{"dim", int64_t{0}, true}, {"k", int64_t{1}, true}, {"largest", true}};
  op.infer_shape = [names](const ir::OpCall& call) -> StatusOr<std::vector<TensorType>> {
    ZG_RETURN_IF_ERROR(CheckOneFloatDType(call, names));
    TensorType values = call.inputs[0];
    const int64_t dim = call.attributes.Int("dim");
    const int64_t k = call.attributes.Int("k");
    if (dim < 0 || dim >= values.shape.num_dims()) {
      return Rejected(call, names, fmt::format("got dim {}, expected one of its dims", dim));
    }
    const int64_t size = values.shape.dim(static_cast<int>(dim));
    if (k < 1 || k > size) {
      return Rejected(
          call, names,
          fmt::format("got k={}, expected 1 to the {} elements of dim {}", k, size, dim));
    }
    values.shape.set_dim(static_cast<int>(dim), k);
    return std::vector<TensorType>{values, {DType::kI64, values.shape}};
  };
  op.sbp_signatures = SplitOtherDims;
  op.gradient = [](ir::GradientContext& context) {
    ZG_RETURN_IF_ERROR(CheckOnlyFirstUsed(context));
    if (!context.needs(0)) return Status::Ok();
    const int64_t dim = context.node().attributes.Int("dim");
    const int64_t size = context.input(0)->type.shape.dim(static_cast<int>(dim));
    context.set_input_gradient(
        0, context.builder().Op("gather_grad", {context.output_gradient(), context.output(1)},
                                {{"dim", dim}, {"size", size}}));
    return Status::Ok();
  };
  op.flops = [](const ir::OpCall& call) { return call.inputs[0].shape.num_elements(); };
  registry.Register(std::move(op));
}

}  // namespace zg
