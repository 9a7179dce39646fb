#include "framework/passes/nodes_of_groups.h"

#include <vector>

namespace zg {
namespace {

using Nodes = std::unordered_set<const ir::Node*>;

bool IsUpdate(const ir::Node& node) { return node.op->traits.kind == ir::OpKind::kUpdate; }

bool WritesTo(const ir::Node& node, const ir::Value& variable) {
  return node.op->traits.has_side_effect && !node.inputs.empty() && node.inputs[0] == &variable;
}

std::vector<const ir::Node*> NodesOfStep(const ir::Graph& graph) {
  std::vector<const ir::Node*> nodes;
  for (const ir::SectionKind kind :
       {ir::SectionKind::kForward, ir::SectionKind::kBackward, ir::SectionKind::kUpdate}) {
    const std::vector<ir::Node*>& own = graph.section(kind)->nodes;
    nodes.insert(nodes.end(), own.begin(), own.end());
  }
  return nodes;
}

// The updates of other groups, and all that is computed from their results.
Nodes NodesOfOthers(const std::vector<const ir::Node*>& nodes, const std::set<int64_t>& groups) {
  Nodes others;
  for (const ir::Node* node : nodes) {  // in execution order: producers first
    bool is_of_others = IsUpdate(*node) && groups.count(node->attributes.Int("group")) == 0;
    for (const ir::Value* input : node->inputs) {
      is_of_others = is_of_others || others.count(input->producer) != 0;
    }
    if (is_of_others) others.insert(node);
  }
  return others;
}

}  // namespace

bool HoldsForOneStep(const ir::Value& variable) {
  return ir::HasRole(variable, Role::kGradient) || ir::HasRole(variable, Role::kAccumulator);
}

std::unordered_set<const ir::Node*> NodesOfGroups(const ir::Graph& graph,
                                                  const std::set<int64_t>& groups) {
  const std::vector<const ir::Node*> nodes = NodesOfStep(graph);
  const Nodes others = NodesOfOthers(nodes, groups);
  Nodes needed;
  std::vector<const ir::Node*> open;
  const auto need = [&](const ir::Node* node) {
    if (others.count(node) == 0 && needed.insert(node).second) open.push_back(node);
  };
  for (const ir::Node* node : nodes) {
    const bool is_for_step = !node->inputs.empty() && HoldsForOneStep(*node->inputs[0]) &&
                             WritesTo(*node, *node->inputs[0]);
    if (node->op->traits.has_side_effect && !is_for_step) need(node);
  }
  while (!open.empty()) {
    const ir::Node& node = *open.back();
    open.pop_back();
    for (const ir::Value* input : node.inputs) {
      if (!ir::IsVariable(*input)) {
        need(input->producer);
        continue;
      }
      if (!HoldsForOneStep(*input)) continue;
      for (const ir::Node* user : input->users) {
        if (WritesTo(*user, *input)) need(user);
      }
    }
  }
  return needed;
}

}  // namespace zg
