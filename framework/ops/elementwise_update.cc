// The update by a rule that is a program of elementwise ops. It serves optimizers without their own
// kernels, and those of users.
#include "framework/ir/op_registry.h"
#include "framework/ops/update_program.h"
#include "framework/ops/update_rules.h"

namespace zg {

void RegisterElementwiseUpdateOps(ir::OpRegistry& registry) {
  ir::OpDef op = UpdateOp(
      "elementwise_update",
      "The parameter p, its gradient g and the states become what `program` computes of them and "
      "of the scalars lr, weight_decay and the number of the update (update_program.h): its "
      "statements `results`. The gradient counts as often as the control says.",
      /*counts=*/true);
  op.max_inputs = -1;
  op.num_outputs = -1;  // as many as infer_shape gives: the parameter and its states
  op.attributes.push_back({"program", std::string(), true});
  op.attributes.push_back({"results", std::vector<int64_t>{}, true});
  op.attributes.push_back({"eval_program", std::string()});  // for the pass eval-weights
  op.infer_shape = [](const ir::OpCall& call) -> StatusOr<std::vector<TensorType>> {
    ZG_ASSIGN_OR_RETURN(const UpdateProgram program, ParseUpdateProgram(call));
    return UpdateTypes(call, static_cast<int>(program.results.size()) - 1);
  };
  op.flops = [](const ir::OpCall& call) -> int64_t {
    const UpdateProgram program = *ParseUpdateProgram(call);
    int64_t flops = 0;
    for (size_t i = 0; i < program.statements.size(); ++i) {
      if (!program.is_scalar[i]) flops += program.statements[i].op->flops;
    }
    return flops * call.inputs[0].shape.num_elements();
  };
  registry.Register(std::move(op));
}

}  // namespace zg
