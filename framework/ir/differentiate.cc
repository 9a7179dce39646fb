#include "framework/ir/differentiate.h"

#include <map>
#include <utility>

namespace zg::ir {
namespace {

class Differentiation {
 public:
  Differentiation(Builder* builder, const std::unordered_set<const Value*>& needed)
      : builder_(*builder), needed_(needed) {}

  StatusOr<std::unordered_map<const Value*, Value*>> Run(const std::vector<Node*>& nodes,
                                                         const std::vector<Seed>& seeds) {
    for (const Seed& seed : seeds) gradients_[seed.y] = seed.gradient;
    for (const Node* node : nodes) {
      const Value* const value = SummedInput(*node);
      if (value != nullptr) ++summed_[{value, node->op}].uses;
    }
    for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {
      ZG_RETURN_IF_ERROR(Visit(**node));
      AddThoseThatWaited(**node);
    }
    ZG_RETURN_IF_ERROR(builder_.status());
    return std::move(gradients_);
  }

 private:
  // The gradients of a value as an input of several nodes of one op.
  struct Summed {
    int uses = 0;
    int visited = 0;
    std::vector<Value*> gradients;
  };

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
    if (!reached || !any_needed || node.op->traits.stops_gradient) return Status::Ok();
    builder_.set_scope(node.scope);
    if (node.op->gradient == nullptr) {
      return InvalidArgument(
          "{}{}{} %{} has no gradient ({}) but lies between a parameter and the loss", node.scope,
          node.scope.empty() ? "" : ": ", node.op->name, node.outputs[0]->name,
          node.op->not_differentiable);
    }
    GradientContext context(node, &builder_, std::move(output_gradients), needed);
    ZG_RETURN_IF_ERROR(node.op->gradient(context));
    ZG_RETURN_IF_ERROR(builder_.status());
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      Value* const gradient = context.input_gradients()[i];
      if (!needed[i] || gradient == nullptr) continue;
      if (Summed* summed = Waits(node, static_cast<int>(i)); summed != nullptr) {
        summed->gradients.push_back(gradient);
      } else {
        Add(node.inputs[i], gradient);
      }
    }
    return Status::Ok();
  }

  // Null: the op has no GradientSum.
  static const Value* SummedInput(const Node& node) {
    const int input = node.op->gradient_sum.input;
    return input < 0 ? nullptr : node.inputs[input];
  }

  // Where the gradient of the input waits for others. Null: it is added at once.
  Summed* Waits(const Node& node, int input) {
    const GradientSum& rule = node.op->gradient_sum;
    if (input != rule.input) return nullptr;
    Summed& summed = summed_.at({node.inputs[input], node.op});
    return summed.uses > 1 && rule.waits(node.Call()) ? &summed : nullptr;
  }

  // The first node, in execution order, of those that share an input leaves none to wait for.
  void AddThoseThatWaited(const Node& node) {
    const Value* const value = SummedInput(node);
    if (value == nullptr) return;
    Summed& summed = summed_.at({value, node.op});
    if (++summed.visited < summed.uses || summed.gradients.empty()) return;
    builder_.set_scope(node.scope);
    for (Value* sum : node.op->gradient_sum.add(builder_, summed.gradients)) Add(value, sum);
    for (Value* gradient : summed.gradients) {
      if (gradient->users.empty() && gradients_.at(value) != gradient) {
        builder_.graph().Erase(gradient->producer);
      }
    }
  }

  void Add(const Value* value, Value* gradient) {
    Value*& sum = gradients_[value];
    sum = sum == nullptr ? gradient : builder_.Op("add", {sum, gradient});
    if (sum != nullptr) builder_.graph().Rename(sum, value->name + ".grad");
  }

  Builder& builder_;
  const std::unordered_set<const Value*>& needed_;
  std::unordered_map<const Value*, Value*> gradients_;
  std::map<std::pair<const Value*, const OpDef*>, Summed> summed_;
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
