#include "framework/optim/append_update.h"

#include "framework/ir/builder.h"

namespace zg::optim {

StatusOr<bool> AppendUpdate::Run(ir::Graph& graph) const {
  const std::vector<ir::Node*> gradients = graph.NodesOf(ir::OpKind::kParameterGradient);
  ir::Builder builder(&graph, graph.section(ir::SectionKind::kUpdate));
  for (ir::Node* node : gradients) {
    ir::Value* parameter = node->inputs[0];
    builder.set_scope(node->scope);
    std::vector<ir::Value*> inputs = {parameter, node->inputs[1]};
    for (const std::string& state : rule_.state_names) {
      ir::Value* variable = builder.Variable(parameter->name + "." + state, parameter->type,
                                             Initializer::Zeros(), Role::kOptimizerState);
      inputs.push_back(variable);
    }
    graph.Erase(node);
    ZG_RETURN_IF_ERROR(builder.status());
    const std::vector<ir::Value*> updated =
        builder.Ops(rule_.op, inputs, rule_.attributes, parameter->name + ".next");
    ZG_RETURN_IF_ERROR(builder.status());
    builder.Ops("assign", {parameter, updated[0]});
    for (size_t i = 1; i < updated.size(); ++i) builder.Ops("assign", {inputs[i + 1], updated[i]});
  }
  ZG_RETURN_IF_ERROR(builder.status());
  return !gradients.empty();
}

}  // namespace zg::optim
