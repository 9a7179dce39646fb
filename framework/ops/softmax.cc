// Softmax and its logarithm along the last dim, and their gradients from the results.
#include "framework/ir/op_registry.h"
#include "framework/ops/formula_gradient.h"
#include "framework/ops/op_rules.h"

namespace zg {
namespace {

// Rows are the last dim: every other one may be split.
ir::OpDef ByRows(std::string name, std::string doc, InputNames names) {
  ir::OpDef op;
  op.name = std::move(name);
  op.doc = std::move(doc);
  op.min_inputs = op.max_inputs = static_cast<int>(names.size());
  op.infer_shape = [names](const ir::OpCall& call) -> StatusOr<std::vector<TensorType>> {
    if (call.inputs[0].shape.num_dims() == 0) {
      return Rejected(call, names, "got a scalar, expected a dim to normalise along");
    }
    return LikeInputs(call, names);
  };
  op.sbp_signatures = [](const ir::OpCall& call) {
    std::vector<ir::SbpSignature> signatures = SplitAnyDim(call);
    signatures.pop_back();
    return signatures;
  };
  op.aliases = [](const ir::OpCall& call) {
    return call.inputs.size() == 1 ? InPlaceOf({0}) : InPlaceOf({0, 1});
  };
  op.flops = [](const ir::OpCall& call) { return 4 * call.inputs[0].shape.num_elements(); };
  return op;
}

ir::OpDef WithGradient(ir::OpDef op, const char* gradient) {
  op.traits.computes_in_f32 = true;
  op.gradient = [gradient](ir::GradientContext& context) {
    if (!context.needs(0)) return Status::Ok();
    context.set_input_gradient(
        0, context.builder().Op(gradient, {context.output_gradient(), context.output(0)}));
    return Status::Ok();
  };
  return op;
}

ir::OpDef WithFormula(ir::OpDef op, Term (*dx)(Term dy, Term y)) {
  op.gradient = GradientOf([dx](const std::vector<Term>& inputs, const ir::Node&) {
    return std::vector<Term>{dx(inputs[0], inputs[1])};
  });
  return op;
}

}  // namespace

void RegisterSoftmaxOps(ir::OpRegistry& registry) {
  registry.Register(WithGradient(
      ByRows("softmax", "y[..,i] = exp(x[..,i] - max) / sum_j exp(x[..,j] - max).", {"x"}),
      "softmax_grad"));
  registry.Register(
      WithFormula(ByRows("softmax_grad", "dx[..,i] = y[..,i] (dy[..,i] - sum_j dy[..,j] y[..,j]).",
                         {"dy", "y"}),
                  [](Term dy, Term y) { return y * (dy - RowSum(dy * y)); }));
  registry.Register(
      WithGradient(ByRows("log_softmax", "y[..,i] = x[..,i] - log(sum_j exp(x[..,j])).", {"x"}),
                   "log_softmax_grad"));
  registry.Register(WithFormula(
      ByRows("log_softmax_grad", "dx[..,i] = dy[..,i] - exp(y[..,i]) sum_j dy[..,j].", {"dy", "y"}),
      [](Term dy, Term y) { return dy - Exp(y) * RowSum(dy); }));
}

}  // namespace zg
