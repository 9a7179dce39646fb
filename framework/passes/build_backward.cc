#include "framework/passes/build_backward.h"

#include <unordered_set>

#include "framework/ir/builder.h"
#include "framework/ir/differentiate.h"
#include "framework/passes/result_names.h"
#include "framework/passes/step_mean.h"

namespace zg {
namespace {

// Null if there is none.
StatusOr<ir::Node*> FindScalarOutput(const ir::Graph& graph, const char* name) {
  for (ir::Node* node : graph.section(ir::SectionKind::kForward)->nodes) {
    if (node->op->traits.kind != ir::OpKind::kOutput || node->attributes.String("name") != name)
      continue;
    const TensorType& type = node->inputs[0]->type;
    if (type != TensorType{DType::kF32, Shape{}}) {
      return InvalidArgument(
          "graph {}: the {} %{} has type {}, expected the scalar f32[]; reduce it with a loss "
          "module",
          graph.name(), name, node->inputs[0]->name, type.ToString());
    }
    return node;
  }
  return nullptr;
}

// The values that depend on a trainable parameter: those for which a gradient is worth computing.
std::unordered_set<const ir::Value*> DependOnParameters(const ir::Graph& graph) {
  std::unordered_set<const ir::Value*> parameters;
  for (const ir::Node* node : graph.section(ir::SectionKind::kVariables)->nodes) {
    if (ir::IsTrainableParameter(*node->outputs[0])) parameters.insert(node->outputs[0]);
  }
  return ir::DependingOn(graph.section(ir::SectionKind::kForward)->nodes, std::move(parameters));
}

// Replaces the per-micro-batch outputs by the means over the step. `weight_output` may be null.
Status AccumulateLoss(ir::Graph& graph, ir::Node* loss_output, ir::Node* weight_output) {
  ir::Value* loss = loss_output->inputs[0];
  graph.Erase(loss_output);
  ZG_ASSIGN_OR_RETURN(ir::Value * mean, AppendStepMean(graph, loss, {"loss_sum", "mean_loss"}));
  ir::Builder update(&graph, graph.section(ir::SectionKind::kUpdate));
  if (weight_output != nullptr) {
    ir::Value* weight = weight_output->inputs[0];
    graph.Erase(weight_output);
    ZG_ASSIGN_OR_RETURN(weight,
                        AppendStepMean(graph, weight, {"loss_weight_sum", "mean_loss_weight"}));
    update.Ops("output", {weight}, {{"name", std::string(kLossWeightResult)}});
    mean = update.Op("divide", {mean, weight}, {}, "weighted_mean_loss");
  }
  update.Ops("output", {mean}, {{"name", std::string(kLossResult)}});
  return update.status();
}

}  // namespace

StatusOr<bool> BuildBackward::Run(ir::Graph& graph) const {
  ZG_ASSIGN_OR_RETURN(ir::Node * loss_output, FindScalarOutput(graph, kLossResult));
  if (loss_output == nullptr) {
    return InvalidArgument(
        "graph {}: it has no loss; return one from the build function, such as nn::mse_loss(...)",
        graph.name());
  }
  ZG_ASSIGN_OR_RETURN(ir::Node * weight_output, FindScalarOutput(graph, kLossWeightResult));
  ir::Value* loss = loss_output->inputs[0];
  const std::unordered_set<const ir::Value*> needed = DependOnParameters(graph);
  if (needed.count(loss) == 0) {
    return InvalidArgument(
        "graph {}: the loss %{} depends on no trainable parameter, so there is nothing to train",
        graph.name(), loss->name);
  }
  if (weight_output != nullptr && needed.count(weight_output->inputs[0]) != 0) {
    return InvalidArgument(
        "graph {}: the loss_weight %{} depends on a parameter, and it has no gradient; make it of "
        "inputs, or of stop_gradient(...)",
        graph.name(), weight_output->inputs[0]->name);
  }
  ir::Builder builder(&graph, graph.section(ir::SectionKind::kBackward));
  ir::Value* const seed = builder.Op(
      "constant", {}, {{"value", 1.0 / static_cast<double>(graph.micro_batches())}}, "loss_seed");
  const std::vector<ir::Node*> forward = graph.section(ir::SectionKind::kForward)->nodes;
  ZG_ASSIGN_OR_RETURN(const auto gradients,
                      ir::Differentiate(&builder, forward, {{loss, seed}}, needed));
  for (ir::Node* variable : graph.section(ir::SectionKind::kVariables)->nodes) {
    ir::Value* parameter = variable->outputs[0];
    const auto gradient = gradients.find(parameter);
    if (!ir::IsTrainableParameter(*parameter) || gradient == gradients.end()) continue;
    builder.set_scope(variable->scope);
    builder.Ops("parameter_gradient", {parameter, gradient->second});
  }
  ZG_RETURN_IF_ERROR(builder.status());
  ZG_RETURN_IF_ERROR(AccumulateLoss(graph, loss_output, weight_output));
  return true;
}

}  // namespace zg
