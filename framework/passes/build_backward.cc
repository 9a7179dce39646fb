#include "framework/passes/build_backward.h"

#include <unordered_map>
#include <unordered_set>

#include "framework/ir/builder.h"

namespace zg {
namespace {

StatusOr<Node*> FindLossOutput(const Graph& graph) {
  for (Node* node : graph.section(SectionKind::kForward)->nodes) {
    if (node->op->name != "output" || node->attributes.String("name") != "loss") continue;
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

bool IsParameter(const Value& value) {
  return value.producer->op->name == "variable" && value.category == MemoryCategory::kParameters;
}

// The values that depend on a parameter: those for which a gradient is worth computing.
std::unordered_set<const Value*> DependOnParameters(const Graph& graph) {
  std::unordered_set<const Value*> needed;
  for (const Node* node : graph.section(SectionKind::kVariables)->nodes) {
    if (IsParameter(*node->outputs[0])) needed.insert(node->outputs[0]);
  }
  for (const Node* node : graph.section(SectionKind::kForward)->nodes) {
    for (const Value* input : node->inputs) {
      if (needed.count(input) == 0) continue;
      for (const Value* output : node->outputs) {
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
  Differentiation(Graph* graph, std::unordered_set<const Value*> needed)
      : builder_(graph, graph->section(SectionKind::kBackward)), needed_(std::move(needed)) {}

  Status Run(Value* loss) {
    Graph& graph = builder_.graph();
    gradients_[loss] = builder_.Op(
        "constant", {}, {{"value", 1.0 / static_cast<double>(graph.micro_batches())}}, "loss_seed");
    const std::vector<Node*> forward = graph.section(SectionKind::kForward)->nodes;
    for (auto node = forward.rbegin(); node != forward.rend(); ++node)
      ZG_RETURN_IF_ERROR(Visit(**node));
    return builder_.status();
  }

  Value* GradientOf(const Value* value) const {
    const auto found = gradients_.find(value);
    return found == gradients_.end() ? nullptr : found->second;
  }
  Builder& builder() { return builder_; }

 private:
  Status Visit(const Node& node) {
    std::vector<Value*> output_gradients;
    bool reached = false;
    for (const Value* output : node.outputs) {
      output_gradients.push_back(GradientOf(output));
      reached = reached || output_gradients.back() != nullptr;
    }
    std::vector<bool> needed;
    bool any_needed = false;
    for (const Value* input : node.inputs) {
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
    GradientContext context(node, &builder_, std::move(output_gradients), needed);
    ZG_RETURN_IF_ERROR(node.op->gradient(context));
    ZG_RETURN_IF_ERROR(builder_.status());
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (needed[i] && context.input_gradients()[i] != nullptr)
        Add(node.inputs[i], context.input_gradients()[i]);
    }
    return Status::Ok();
  }

  void Add(const Value* value, Value* gradient) {
    Value*& sum = gradients_[value];
    sum = sum == nullptr ? gradient : builder_.Op("add", {sum, gradient});
    if (sum != nullptr) builder_.graph().Rename(sum, value->name + ".grad");
  }

  Builder builder_;
  std::unordered_set<const Value*> needed_;
  std::unordered_map<const Value*, Value*> gradients_;
};

// Replaces the per-micro-batch loss output by the mean over the step.
Status AccumulateLoss(Graph& graph, Node* loss_output) {
  Value* loss = loss_output->inputs[0];
  graph.Erase(loss_output);
  Builder forward(&graph, graph.section(SectionKind::kForward));
  StatusOr<Node*> variable =
      graph.AddNode(graph.section(SectionKind::kVariables),
                    {"variable",
                     {},
                     {{"dtype", std::string("f32")}, {"shape", std::vector<int64_t>{}}},
                     "",
                     "loss_sum"});
  ZG_RETURN_IF_ERROR(variable.status());
  Value* sum = (*variable)->outputs[0];
  Value* next = forward.Op("accumulate", {sum, loss}, {}, "loss_sum");
  forward.Ops("assign", {sum, next});
  Builder update(&graph, graph.section(SectionKind::kUpdate));
  Value* mean = update.Op(
      "scale", {sum}, {{"factor", 1.0 / static_cast<double>(graph.micro_batches())}}, "mean_loss");
  update.Ops("output", {mean}, {{"name", std::string("loss")}});
  ZG_RETURN_IF_ERROR(forward.status());
  return update.status();
}

}  // namespace

StatusOr<bool> BuildBackward::Run(Graph& graph) const {
  ZG_ASSIGN_OR_RETURN(Node * loss_output, FindLossOutput(graph));
  Value* loss = loss_output->inputs[0];
  std::unordered_set<const Value*> needed = DependOnParameters(graph);
  if (needed.count(loss) == 0) {
    return InvalidArgument(
        "graph {}: the loss %{} depends on no parameter, so there is nothing to train",
        graph.name(), loss->name);
  }
  Differentiation differentiation(&graph, std::move(needed));
  ZG_RETURN_IF_ERROR(differentiation.Run(loss));
  for (Node* variable : graph.section(SectionKind::kVariables)->nodes) {
    Value* parameter = variable->outputs[0];
    Value* gradient = differentiation.GradientOf(parameter);
    if (!IsParameter(*parameter) || gradient == nullptr) continue;
    differentiation.builder().set_scope(variable->scope);
    differentiation.builder().Ops("parameter_gradient", {parameter, gradient});
  }
  ZG_RETURN_IF_ERROR(differentiation.builder().status());
  ZG_RETURN_IF_ERROR(AccumulateLoss(graph, loss_output));
  return true;
}

}  // namespace zg
