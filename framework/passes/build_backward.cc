#include "framework/passes/build_backward.h"

#include <unordered_map>
#include <unordered_set>

#include "framework/ir/builder.h"

namespace zg {
namespace {

StatusOr<ir::Node*> FindLossOutput(const ir::Graph& graph) {
  for (ir::Node* node : graph.section(ir::SectionKind::kForward)->nodes) {
    if (node->op->traits.kind != ir::OpKind::kOutput || node->attributes.String("name") != "loss")
      continue;
    const TensorType& type = node->inputs[0]->type;
    if (type != TensorType{DType::kF32, Shape{}}) {
      return InvalidArgument(
          "graph {}: the loss %{} has type {}, expected the scalar f32[]; reduce it with a loss "
          "module",
          graph.name(), node->inputs[0]->name, type.ToString());
    }
    return node;
  }
  return InvalidArgument(
      "graph {}: it has no loss; return one from the build function, such as nn::mse_loss(...)",
      graph.name());
}

// The values that depend on a trainable parameter: those for which a gradient is worth computing.
std::unordered_set<const ir::Value*> DependOnParameters(const ir::Graph& graph) {
  std::unordered_set<const ir::Value*> needed;
  for (const ir::Node* node : graph.section(ir::SectionKind::kVariables)->nodes) {
    if (ir::IsTrainableParameter(*node->outputs[0])) needed.insert(node->outputs[0]);
  }
  for (const ir::Node* node : graph.section(ir::SectionKind::kForward)->nodes) {
    for (const ir::Value* input : node->inputs) {
      if (needed.count(input) == 0) continue;
      for (const ir::Value* output : node->outputs) {
        if (IsFloat(output->type.dtype)) needed.insert(output);
      }
      break;
    }
  }
  return needed;
}

// Walks the forward nodes backwards and keeps the gradient found so far of every value.
class Differentiation {
 public:
  Differentiation(ir::Graph* graph, std::unordered_set<const ir::Value*> needed)
      : builder_(graph, graph->section(ir::SectionKind::kBackward)), needed_(std::move(needed)) {}

  Status Run(ir::Value* loss) {
    ir::Graph& graph = builder_.graph();
    gradients_[loss] = builder_.Op(
        "constant", {}, {{"value", 1.0 / static_cast<double>(graph.micro_batches())}}, "loss_seed");
    const std::vector<ir::Node*> forward = graph.section(ir::SectionKind::kForward)->nodes;
    for (auto node = forward.rbegin(); node != forward.rend(); ++node)
      ZG_RETURN_IF_ERROR(Visit(**node));
    return builder_.status();
  }

  ir::Value* GradientOf(const ir::Value* value) const {
    const auto found = gradients_.find(value);
    return found == gradients_.end() ? nullptr : found->second;
  }
  ir::Builder& builder() { return builder_; }

 private:
  Status Visit(const ir::Node& node) {
    std::vector<ir::Value*> output_gradients;
    bool reached = false;
    for (const ir::Value* output : node.outputs) {
      output_gradients.push_back(GradientOf(output));
      reached = reached || output_gradients.back() != nullptr;
    }
    std::vector<bool> needed;
    bool any_needed = false;
    for (const ir::Value* input : node.inputs) {
      needed.push_back(needed_.count(input) != 0);
      any_needed = any_needed || needed.back();
    }
    if (!reached || !any_needed) return Status::Ok();
    builder_.set_scope(node.scope);
    if (node.op->gradient == nullptr) {
      return InvalidArgument(
          "{}: {} %{} has no gradient ({}) but lies between a parameter and the loss", node.scope,
          node.op->name, node.outputs[0]->name, node.op->not_differentiable);
    }
    ir::GradientContext context(node, &builder_, std::move(output_gradients), needed);
    ZG_RETURN_IF_ERROR(node.op->gradient(context));
    ZG_RETURN_IF_ERROR(builder_.status());
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (needed[i] && context.input_gradients()[i] != nullptr)
        Add(node.inputs[i], context.input_gradients()[i]);
    }
    return Status::Ok();
  }

  void Add(const ir::Value* value, ir::Value* gradient) {
    ir::Value*& sum = gradients_[value];
    sum = sum == nullptr ? gradient : builder_.Op("add", {sum, gradient});
    if (sum != nullptr) builder_.graph().Rename(sum, value->name + ".grad");
  }

  ir::Builder builder_;
  std::unordered_set<const ir::Value*> needed_;
  std::unordered_map<const ir::Value*, ir::Value*> gradients_;
};

// Replaces the per-micro-batch loss output by the mean over the step.
Status AccumulateLoss(ir::Graph& graph, ir::Node* loss_output) {
  ir::Value* loss = loss_output->inputs[0];
  graph.Erase(loss_output);
  ir::Builder forward(&graph, graph.section(ir::SectionKind::kForward));
  ir::Value* sum = forward.Storage("loss_sum", {DType::kF32, Shape{}}, Role::kAccumulator);
  ZG_RETURN_IF_ERROR(forward.status());
  ir::Value* next = forward.Op("accumulate", {sum, loss}, {}, "loss_sum");
  forward.Ops("assign", {sum, next});
  ir::Builder update(&graph, graph.section(ir::SectionKind::kUpdate));
  ir::Value* mean = update.Op(
      "scale", {sum}, {{"factor", 1.0 / static_cast<double>(graph.micro_batches())}}, "mean_loss");
  update.Ops("output", {mean}, {{"name", std::string("loss")}});
  ZG_RETURN_IF_ERROR(forward.status());
  return update.status();
}

}  // namespace

StatusOr<bool> BuildBackward::Run(ir::Graph& graph) const {
  ZG_ASSIGN_OR_RETURN(ir::Node * loss_output, FindLossOutput(graph));
  ir::Value* loss = loss_output->inputs[0];
  std::unordered_set<const ir::Value*> needed = DependOnParameters(graph);
  if (needed.count(loss) == 0) {
    return InvalidArgument(
        "graph {}: the loss %{} depends on no trainable parameter, so there is nothing to train",
        graph.name(), loss->name);
  }
  Differentiation differentiation(&graph, std::move(needed));
  ZG_RETURN_IF_ERROR(differentiation.Run(loss));
  for (ir::Node* variable : graph.section(ir::SectionKind::kVariables)->nodes) {
    ir::Value* parameter = variable->outputs[0];
    ir::Value* gradient = differentiation.GradientOf(parameter);
    if (!ir::IsTrainableParameter(*parameter) || gradient == nullptr) continue;
    differentiation.builder().set_scope(variable->scope);
    differentiation.builder().Ops("parameter_gradient", {parameter, gradient});
  }
  ZG_RETURN_IF_ERROR(differentiation.builder().status());
  ZG_RETURN_IF_ERROR(AccumulateLoss(graph, loss_output));
  return true;
}

}  // namespace zg
