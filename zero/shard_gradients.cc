#include "zero/shard_gradients.h"

#include "zero/update_nodes.h"

namespace zg::zero {
namespace {

// Moves the reduction, and the nodes that keep its result, right after the gradient.
bool MoveBehind(ir::Graph& graph, ir::Node* reduction, ir::Node* gradient) {
  ir::Node* last = gradient;
  bool changed = false;
  const auto append = [&](ir::Node* node) {
    changed = changed || graph.NextOf(last) != node;
    graph.MoveAfter(node, last);
    last = node;
  };
  append(reduction);
  if (reduction->op->traits.kind == ir::OpKind::kAccumulate) {
    append(reduction->outputs[0]->users[0]);
  }
  return changed;
}

// The node that reads the full-size gradient: its `place`, or the `accumulate` into the variable
// that the update reads. Null for a full-size accumulator, which stays until the update.
ir::Node* ReductionOf(const ir::Node& update) {
  ir::Value* gradient = update.inputs[1];
  if (gradient->producer->op->traits.kind == ir::OpKind::kPlace) {
    return ir::IsVariable(*VariableOf(gradient)) ? nullptr : gradient->producer;
  }
  if (gradient->producer->op->traits.kind == ir::OpKind::kCast) {
    gradient = gradient->producer->inputs[0];
  }
  for (ir::Node* user : gradient->users) {
    if (user->op->traits.kind == ir::OpKind::kAccumulate) return user;
  }
  return nullptr;
}

}  // namespace

StatusOr<bool> ShardGradients::Run(ir::Graph& graph) const {
  if (!HasShardAxes(graph)) return false;
  ZG_ASSIGN_OR_RETURN(const std::vector<ir::Node*> updates, UnboxedUpdateNodes(graph, name()));
  bool changed = false;
  for (ir::Node* update : updates) {
    ir::Node* reduction = StageOf(*update) < 2 ? nullptr : ReductionOf(*update);
    if (reduction == nullptr) continue;
    ir::Value* whole = reduction->inputs.back();
    ir::Node* gradient = whole->producer;
    if (gradient->op->traits.kind == ir::OpKind::kPack && !ir::IsInFlight(*whole)) {
      gradient->attributes.Set("in_flight", true);
      changed = true;
    }
    changed = MoveBehind(graph, reduction, gradient) || changed;
  }
  return changed;
}

}  // namespace zg::zero
