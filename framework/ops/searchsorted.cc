// Where values belong in sorted sequences.
#include <fmt/format.h>

#include "framework/ir/op_registry.h"
#include "framework/ops/op_rules.h"

namespace zg {

void RegisterSearchsortedOps(ir::OpRegistry& registry) {
  const InputNames names = {"sorted", "values"};
  ir::OpDef op;
  op.name = "searchsorted";
  op.traits.promotes_types = true;
  op.doc =
      "y[.., i] = the number of elements of sorted[.., :] below values[.., i]; with `right` those "
      "that are not above it. The elements ascend along the last dim; a vector serves all values. NaN "
      "belongs behind all others.";
  op.min_inputs = op.max_inputs = 2;
  op.attributes = {{"right", false}};
  op.infer_shape = [names](const ir::OpCall& call) -> StatusOr<std::vector<TensorType>> {
    const TensorType& sorted = call.inputs[0];
    const TensorType& values = call.inputs[1];
    if (sorted.dtype != DType::kI64) ZG_RETURN_IF_ERROR(CheckOneFloatDType(call, names));
    if (sorted.dtype != values.dtype) return Rejected(call, names, "dtypes differ");
    const int num_dims = sorted.shape.num_dims();
    const bool serves =
        num_dims == 1 || (num_dims > 1 && values.shape.num_dims() == num_dims &&
                          WithoutLastDim(sorted.shape) == WithoutLastDim(values.shape));
    if (serves) return std::vector<TensorType>{{DType::kI64, values.shape}};
    return Rejected(
        call, names,
        "expected sorted sequences for the same leading dims as the values, or a vector");
  };
  op.sbp_signatures = [](const ir::OpCall& call) {
    const bool is_vector = call.inputs[0].shape.num_dims() == 1;
    std::vector<ir::SbpSignature> signatures;
    const int num_dims = call.inputs[1].shape.num_dims();
    for (int dim = 0; dim < num_dims; ++dim) {
      const bool is_shared = is_vector || dim == num_dims - 1;
      signatures.push_back({{is_shared ? Sbp::B() : Sbp::S(dim), Sbp::S(dim)}, {Sbp::S(dim)}});
    }
    return signatures;
  };
  op.not_differentiable = "positions have no gradient";
  op.flops = [](const ir::OpCall& call) { return call.inputs[1].shape.num_elements(); };
  registry.Register(std::move(op));
}

}  // namespace zg
