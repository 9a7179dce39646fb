#include "framework/optim/append_update.h"

#include "framework/ir/builder.h"

namespace zg::optim {
namespace {

// For the update of one parameter.
ir::Attributes AttributesOf(const UpdateRules& rules, const UpdateRule& rule, int group,
                            const std::string& parameter) {
  ir::Attributes attributes = rule.attributes;
  if (group > 0) attributes.Set("group", int64_t{group});
  const auto joined = rules.joined_after.find(parameter);
  if (rule.counts && joined != rules.joined_after.end()) {
    attributes.Set("after_updates", joined->second);
  }
  return attributes;
}

}  // namespace

StatusOr<bool> AppendUpdate::Run(ir::Graph& graph) const {
  const std::vector<ir::Node*> gradients = graph.NodesOf(ir::OpKind::kParameterGradient);
  ir::Builder builder(&graph, graph.section(ir::SectionKind::kUpdate));
  for (ir::Node* node : gradients) {
    ir::Value* parameter = node->inputs[0];
    builder.set_scope(node->scope);
    const int group = rules_.GroupOf(parameter->name);
    const UpdateRule& rule = rules_.RuleOf(group).For(parameter->type.shape);
    std::vector<ir::Value*> inputs = {parameter, node->inputs[1]};
    for (const State& state : rule.states) {
      const TensorType type = {state.dtype, state.ShapeFor(parameter->type.shape)};
      ir::Value* variable = builder.Variable(parameter->name + "." + state.name, type,
                                             Initializer::Zeros(), Role::kOptimizerState);
      inputs.push_back(variable);
    }
    graph.Erase(node);
    ZG_RETURN_IF_ERROR(builder.status());
    const std::vector<ir::Value*> updated =
        builder.Ops(rule.op, inputs, AttributesOf(rules_, rule, group, parameter->name),
                    parameter->name + ".next");
    ZG_RETURN_IF_ERROR(builder.status());
    builder.Ops("assign", {parameter, updated[0]});
    for (size_t i = 1; i < updated.size(); ++i) builder.Ops("assign", {inputs[i + 1], updated[i]});
  }
  ZG_RETURN_IF_ERROR(builder.status());
  return !gradients.empty();
}

}  // namespace zg::optim
