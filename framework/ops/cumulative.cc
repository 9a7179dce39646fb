// Running maxima and running sums of exponentials along a dim. A running sum is cumsum.cc.
#include <fmt/format.h>

#include <algorithm>

#include "framework/ir/op_registry.h"
#include "framework/ops/op_rules.h"
#include "framework/ops/terms.h"

namespace zg {
namespace {

using Types = std::vector<TensorType>;

const InputNames kNames = {"x"};

Status CheckCall(const ir::OpCall& call) {
  ZG_RETURN_IF_ERROR(CheckOneFloatDType(call, kNames));
  const int64_t dim = call.attributes.Int("dim");
  if (dim >= 0 && dim < call.inputs[0].shape.num_dims()) return Status::Ok();
  return Rejected(call, kNames, fmt::format("got dim {}, expected one of its dims", dim));
}

ir::OpDef CumulativeArgmax() {
  ir::OpDef op;
  op.name = "cumulative_argmax";
  op.doc =
      "y[.., i, ..] = the position of the largest x[.., j, ..] with j <= i along `dim`. Of equal ones "
      "it is the first; NaN is the largest.";
  op.attributes = {{"dim", int64_t{0}, true}};
  op.infer_shape = [](const ir::OpCall& call) -> StatusOr<Types> {
    ZG_RETURN_IF_ERROR(CheckCall(call));
    return Types{{DType::kI64, call.inputs[0].shape}};
  };
  op.sbp_signatures = SplitOtherDims;
  op.not_differentiable = "positions have no gradient";
  op.flops = [](const ir::OpCall& call) { return call.inputs[0].shape.num_elements(); };
  return op;
}

// dx_j = sum over i >= j of dy_i e^(x_j - y_i) = e^(x_j - y_j) g_j with the recurrence
// g_j = dy_j + e^(y_j - y_(j+1)) g_(j+1), none of whose exponents is above 0. The bounds give
// elements of -infinity no gradient.
Status LogCumsumExpGradient(ir::GradientContext& context) {
  if (!context.needs(0)) return Status::Ok();
  ir::Builder& builder = context.builder();
  const int64_t dim = context.node().attributes.Int("dim");
  const bool reverse = context.node().attributes.Bool("reverse");
  const int64_t size = context.input(0)->type.shape.dim(static_cast<int>(dim));
  const int64_t num_others = std::max<int64_t>(size - 1, 0);
  const Term x = ClampMin(As(DType::kF32, {&builder, context.input(0)}), -2e30);
  const Term y = ClampMin(As(DType::kF32, {&builder, context.output(0)}), -1e30);
  const Term dy = As(DType::kF32, {&builder, context.output_gradient()});
  const auto without = [&](int64_t start) {
    return Append("slice", y, {{"dim", dim}, {"start", start}, {"size", num_others}});
  };
  const int64_t skipped = size - num_others;
  const Term to_next = reverse ? without(skipped) - without(0) : without(0) - without(skipped);
  const ir::Attributes of_last = {
      {"dim", dim}, {"before", reverse ? skipped : 0}, {"after", reverse ? 0 : skipped}};
  const Term decay = Exp(Append("pad", to_next, of_last));
  const Term g = Append("linear_recurrence", decay, dy,
                        {{"dim", dim}, {"from_end", !reverse}, {"leaving", false}});
  context.set_input_gradient(0, As(context.input(0)->type.dtype, g * Exp(x - y)).value);
  return Status::Ok();
}

ir::OpDef LogCumsumExp() {
  ir::OpDef op;
  op.name = "logcumsumexp";
  op.traits.computes_in_f32 = true;
  op.doc =
      "y[.., i, ..] = ln(the sum of e^x[.., j, ..] over j <= i) along `dim`; with `reverse` over j >= "
      "i. One is added after the other, in f32: y_i = ln(e^y_(i-1) + e^x_i).";
  op.attributes = {{"dim", int64_t{0}, true}, {"reverse", false}};
  op.infer_shape = [](const ir::OpCall& call) -> StatusOr<Types> {
    ZG_RETURN_IF_ERROR(CheckCall(call));
    return Types{call.inputs[0]};
  };
  op.sbp_signatures = SplitOtherDims;
  op.aliases = [](const ir::OpCall&) { return InPlaceOf({0}); };
  op.gradient = LogCumsumExpGradient;
  op.flops = [](const ir::OpCall& call) { return 8 * call.inputs[0].shape.num_elements(); };
  return op;
}

}  // namespace

void RegisterCumulativeOps(ir::OpRegistry& registry) {
  registry.Register(CumulativeArgmax());
  registry.Register(LogCumsumExp());
}

}  // namespace zg
