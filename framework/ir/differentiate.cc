#include "framework/ir/differentiate.h"

namespace zg::ir {
namespace {

class Differentiation {
 public:
  Differentiation(Builder* builder, const std::unordered_set<const Value*>& needed)
      : builder_(*builder), needed_(needed) {}

  StatusOr<std::unordered_map<const Value*, Value*>> Run(const std::vector<Node*>& nodes,
                                                         const std::vector<Seed>& seeds) {
    for (const Seed& seed : seeds) gradients_[seed.y] = seed.gradient;
    for (auto node = nodes.rbegin(); node != nodes.rend(); ++node)
      ZG_RETURN_IF_ERROR(Visit(**node));
    ZG_RETURN_IF_ERROR(builder_.status());
    return std::move(gradients_);
  }

 private:
  Value* GradientOf(const Value* value) const {
    const auto found = gradients_.find(value);
    return found == gradients_.end() ? nullptr : found->second;
  }

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

  Builder& builder_;
  const std::unordered_set<const Value*>& needed_;
  std::unordered_map<const Value*, Value*> gradients_;
};

}  // namespace

std::unordered_set<const Value*> DependingOn(const std::vector<Node*>& nodes,
                                             std::unordered_set<const Value*> sources) {
  for (const Node* node : nodes) {
    if (node->op->traits.stops_gradient) continue;
    for (const Value* input : node->inputs) {
      if (sources.count(input) == 0) continue;
      for (const Value* output : node->outputs) {
        if (IsFloat(output->type.dtype)) sources.insert(output);
      }
      break;
    }
  }
  return sources;
}

StatusOr<std::unordered_map<const Value*, Value*>> Differentiate(
    Builder* builder, const std::vector<Node*>& nodes, const std::vector<Seed>& seeds,
    const std::unordered_set<const Value*>& needed) {
  return Differentiation(builder, needed).Run(nodes, seeds);
}

}  // namespace zg::ir
