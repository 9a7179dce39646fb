// Running sums along a dim.
#include <fmt/format.h>

#include "framework/ir/op_registry.h"
#include "framework/ops/op_rules.h"

namespace zg {

void RegisterCumsumOps(ir::OpRegistry& registry) {
  const InputNames names = {"x"};
  ir::OpDef op;
  op.name = "cumsum";
  op.traits.computes_in_f32 = true;
  op.doc =
      "y[.., i, ..] = the sum of x[.., j, ..] over j <= i along `dim`; with `reverse` over j >= i. "
      "One is added after the other, in f32; i64 exactly.";
  op.attributes = {{"dim", int64_t{0}, true}, {"reverse", false}};
  op.infer_shape = [names](const ir::OpCall& call) -> StatusOr<std::vector<TensorType>> {
    const int64_t dim = call.attributes.Int("dim");
    if (dim < 0 || dim >= call.inputs[0].shape.num_dims()) {
      return Rejected(call, names, fmt::format("got dim {}, expected one of its dims", dim));
    }
    if (call.inputs[0].dtype == DType::kI64) return std::vector<TensorType>{call.inputs[0]};
    return LikeInputs(call, names);
  };
  op.sbp_signatures = [](const ir::OpCall& call) {
    std::vector<ir::SbpSignature> signatures = SplitOtherDims(call);
    if (IsFloat(call.inputs[0].dtype)) signatures.push_back({{Sbp::P()}, {Sbp::P()}});
    return signatures;
  };
  op.aliases = [](const ir::OpCall&) { return InPlaceOf({0}); };
  op.gradient = [](ir::GradientContext& context) {
    if (!context.needs(0)) return Status::Ok();
    const ir::Attributes& forward = context.node().attributes;
    context.set_input_gradient(0, context.builder().Op("cumsum", {context.output_gradient()},
                                                       {{"dim", forward.Int("dim")},
                                                        {"reverse", !forward.Bool("reverse")}}));
    return Status::Ok();
  };
  op.flops = [](const ir::OpCall& call) { return call.inputs[0].shape.num_elements(); };
  registry.Register(std::move(op));
}

}  // namespace zg
