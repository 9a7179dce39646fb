// The op that fuse-elementwise makes: a chain of elementwise ops that runs over the data once.
#include "framework/ir/op_registry.h"
#include "framework/ops/elementwise_program.h"
#include "framework/ops/op_rules.h"

namespace zg {
namespace {

StatusOr<ElementwiseProgram> Program(const ir::OpCall& call) {
  return ParseElementwiseProgram(call.attributes.String("program"),
                                 static_cast<int>(call.inputs.size()));
}

}  // namespace

void RegisterFusedElementwiseOps(ir::OpRegistry& registry) {
  ir::OpDef op;
  op.name = "fused_elementwise";
  op.doc =
      "The elementwise ops of `program` one after the other on each element, as in "
      "\"t0=add(i0,i1);t1=gelu(t0)\": iN is input N, tN the result of statement N, the last one is "
      "the output. "
      "Same bits as the separate ops.";
  op.max_inputs = -1;
  op.attributes = {{"program", std::string(), true}};
  op.infer_shape = [](const ir::OpCall& call) -> StatusOr<std::vector<TensorType>> {
    for (const TensorType& input : call.inputs) {
      if (input == call.inputs[0]) continue;
      return InvalidArgument("fused_elementwise: input types differ: {}, {}",
                             call.inputs[0].ToString(), input.ToString());
    }
    ZG_RETURN_IF_ERROR(Program(call).status());
    return std::vector<TensorType>{call.inputs[0]};
  };
  op.traits.keeps_groups = true;
  op.sbp_signatures = SplitAnyDim;
  op.not_differentiable = "fusing comes after backward is built";
  op.aliases = [](const ir::OpCall& call) {
    std::vector<ir::AliasRule> rules(call.inputs.size());
    for (size_t i = 0; i < rules.size(); ++i) rules[i].input = static_cast<int>(i);
    return rules;
  };
  op.flops = [](const ir::OpCall& call) -> int64_t {
    return FlopsPerElement(*Program(call)) * call.inputs[0].shape.num_elements();
  };
  registry.Register(std::move(op));
}

}  // namespace zg
