#include "framework/passes/fuse_loss_gradient.h"

#include <algorithm>
#include <string>
#include <vector>

#include "framework/ir/builder.h"
#include "framework/ops/op_names.h"

namespace zg {
namespace {

// The gradient that a loss is fused with; null: none.
ir::Node* GradientOf(const ir::Node& loss) {
  const ir::Value& log_sum_exp = *loss.outputs[1];
  if (log_sum_exp.users.size() != 1) return nullptr;
  ir::Node* const grad = log_sum_exp.users[0];
  const bool is_its = grad->op->name == op_names::kSoftmaxCrossEntropyGrad &&
                      grad->inputs.size() == 4 && grad->inputs[1] == loss.inputs[0] &&
                      grad->inputs[2] == loss.inputs[1] && grad->inputs[3] == &log_sum_exp &&
                      grad->attributes.Float("divisor") == loss.attributes.Float("divisor");
  return is_its ? grad : nullptr;
}

// Whether a variable holds the same in forward and in backward.
bool IsConstant(const ir::Value& variable) {
  return std::none_of(variable.users.begin(), variable.users.end(), [](const ir::Node* user) {
    const ir::OpKind kind = user->op->traits.kind;
    return (kind == ir::OpKind::kAssign || kind == ir::OpKind::kAccumulate) &&
           user->section->kind != ir::SectionKind::kUpdate;
  });
}

bool IsWhole(const ir::Value& value) {
  return std::all_of(value.sbp.begin(), value.sbp.end(), [](Sbp one) { return one == Sbp::B(); });
}

class Fusion {
 public:
  explicit Fusion(ir::Graph* graph) : graph_(*graph) {}

  StatusOr<bool> Fuse(ir::Node* loss) {
    if (loss->section->kind != ir::SectionKind::kForward) return false;
    ir::Node* const grad = GradientOf(*loss);
    if (grad == nullptr || grad->section->kind != ir::SectionKind::kBackward) return false;
    std::vector<ir::Node*> moved;
    if (!IsWhole(*grad->inputs[0]) || !IsThere(*grad->inputs[0], *loss, &moved)) return false;
    for (const ir::Node* user : loss->inputs[0]->users) {
      const bool is_later = user->section != loss->section || IsBehind(*user, *loss);
      if (user != grad && is_later) return false;
    }
    for (ir::Node* node : moved) graph_.MoveBefore(node, loss);
    return Replace(loss, grad);
  }

 private:
  bool IsBehind(const ir::Node& node, const ir::Node& other) const {
    return graph_.IndexOf(&node) > graph_.IndexOf(&other);
  }

  // Whether the value can be there when `loss` runs: `moved` gets the nodes of backward that it takes,
  // in their order.
  bool IsThere(const ir::Value& value, const ir::Node& loss, std::vector<ir::Node*>* moved) const {
    ir::Node* const producer = value.producer;
    if (producer->section->kind == ir::SectionKind::kVariables) return IsConstant(value);
    if (producer->section == loss.section) return IsBehind(loss, *producer);
    if (std::find(moved->begin(), moved->end(), producer) != moved->end()) return true;
    const ir::OpTraits& traits = producer->op->traits;
    const bool can_move = traits.kind == ir::OpKind::kConstant ||
                          (traits.kind == ir::OpKind::kCompute && traits.may_repeat());
    if (!can_move) return false;
    for (const ir::Value* input : producer->inputs) {
      if (!IsThere(*input, loss, moved)) return false;
    }
    moved->push_back(producer);
    return true;
  }

  StatusOr<bool> Replace(ir::Node* loss, ir::Node* grad) {
    ir::Builder builder(&graph_, loss->section);
    builder.InsertBefore(loss);
    builder.set_scope(loss->scope);
    const std::vector<ir::Value*> fused = builder.Ops(
        op_names::kSoftmaxCrossEntropyWithGrad, {grad->inputs[0], loss->inputs[0], loss->inputs[1]},
        {{"divisor", loss->attributes.Float("divisor")}});
    ZG_RETURN_IF_ERROR(builder.status());
    const std::string names[] = {loss->outputs[0]->name, grad->outputs[0]->name};
    graph_.ReplaceAllUses(loss->outputs[0], fused[0]);
    graph_.ReplaceAllUses(grad->outputs[0], fused[1]);
    graph_.Erase(grad);
    graph_.Erase(loss);
    for (int i = 0; i < 2; ++i) graph_.Rename(fused[i], names[i]);
    return true;
  }

  ir::Graph& graph_;
};

}  // namespace

StatusOr<bool> FuseLossGradient::Run(ir::Graph& graph) const {
  Fusion fusion(&graph);
  bool changed = false;
  for (ir::Node* loss : graph.NodesOf(op_names::kSoftmaxCrossEntropy)) {
    ZG_ASSIGN_OR_RETURN(const bool fused, fusion.Fuse(loss));
    changed = changed || fused;
  }
  return changed;
}

}  // namespace zg
