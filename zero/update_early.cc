#include "zero/update_early.h"

#include <algorithm>
#include <unordered_set>

#include "framework/passes/result_names.h"
#include "zero/update_nodes.h"

namespace zg::zero {
namespace {

class Mover {
 public:
  explicit Mover(ir::Graph* graph)
      : graph_(*graph),
        backward_(graph->section(ir::SectionKind::kBackward)),
        update_(graph->section(ir::SectionKind::kUpdate)) {}

  bool Move(ir::Node* update) {
    const std::unordered_set<ir::Node*> group = GroupOf(update);
    std::vector<ir::Node*> ordered;
    for (ir::Node* node : update_->nodes) {
      if (group.count(node) == 0) continue;
      if (node != update && node->op->traits.kind == ir::OpKind::kUpdate)
        return false;  // they share a node
      ordered.push_back(node);
    }
    ir::Node* after = LastBefore(ordered);
    if (after == nullptr) return false;
    for (ir::Node* node : ordered) {
      graph_.MoveAfter(node, after);
      after = node;
    }
    return true;
  }

 private:
  // The nodes of the update section that are connected with the update.
  std::unordered_set<ir::Node*> GroupOf(ir::Node* update) const {
    std::unordered_set<ir::Node*> group = {update};
    std::vector<ir::Node*> open = {update};
    const auto add = [&](ir::Node* node) {
      if (node->section == update_ && group.insert(node).second) open.push_back(node);
    };
    while (!open.empty()) {
      const ir::Node* node = open.back();
      open.pop_back();
      for (const ir::Value* input : node->inputs) add(input->producer);
      for (const ir::Value* output : node->outputs) {
        for (ir::Node* user : output->users) add(user);
      }
    }
    return group;
  }

  // The last node of backward that makes an input of the group or reads a value that it overwrites.
  ir::Node* LastBefore(const std::vector<ir::Node*>& group) const {
    std::unordered_set<const ir::Node*> before;
    for (const ir::Node* node : group) {
      for (const ir::Value* input : node->inputs) before.insert(input->producer);
      if (node->op->traits.kind == ir::OpKind::kAssign) AddReaders(*node->inputs[0], &before);
      if (node->op->traits.kind != ir::OpKind::kUpdate) continue;
      for (size_t i = 2; i < node->inputs.size(); ++i) AddReaders(*node->inputs[i], &before);
    }
    for (const ir::Node* node : update_->nodes) {  // it reads the old value after backward
      const bool in_group = std::find(group.begin(), group.end(), node) != group.end();
      if (!in_group && before.count(node) != 0) return nullptr;
    }
    const auto last = std::find_if(backward_->nodes.rbegin(), backward_->nodes.rend(),
                                   [&](const ir::Node* node) { return before.count(node) != 0; });
    return last == backward_->nodes.rend() ? nullptr : *last;
  }

  // Readers of views read the variable's memory too; a gather will move down to its first user.
  static void AddReaders(const ir::Value& value, std::unordered_set<const ir::Node*>* readers) {
    for (const ir::Node* user : value.users) {
      readers->insert(user);
      if (user->op->traits.sinks_to_user) AddReaders(*user->outputs[0], readers);
    }
  }

  ir::Graph& graph_;
  ir::Section* backward_;
  ir::Section* update_;
};

}  // namespace

StatusOr<bool> UpdateEarly::Run(ir::Graph& graph) const {
  const int64_t micro_steps = graph.micro_batches() / graph.mesh().num_data_ranks();
  if (micro_steps != 1) {
    return InvalidArgument(
        "every rank computes {} micro-batches per step, and gradients are complete after the last "
        "only; use one micro-batch per rank",
        micro_steps);
  }
  for (const ir::Node* output : graph.NodesOf(ir::OpKind::kOutput)) {
    if (output->section->kind != ir::SectionKind::kUpdate ||
        output->attributes.String("name") != kLossWeightResult) {
      continue;
    }
    return InvalidArgument(
        "the loss has a loss_weight, and that of the whole step divides all gradients; turn "
        "early updates off");
  }
  Mover mover(&graph);
  bool changed = false;
  for (ir::Node* update : UpdateNodes(graph)) changed = mover.Move(update) || changed;
  return changed;
}

}  // namespace zg::zero
