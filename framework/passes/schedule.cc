#include "framework/passes/schedule.h"

#include <algorithm>

namespace zg {
namespace {

// The node's first user in its own section; null when only other sections use it.
ir::Node* FirstUser(const ir::Graph& graph, const ir::Node& node) {
  ir::Node* first = nullptr;
  int first_index = 0;
  for (ir::Node* user : node.outputs[0]->users) {
    if (user->section != node.section) continue;
    const int index = graph.IndexOf(user);
    if (first == nullptr || index < first_index) {
      first = user;
      first_index = index;
    }
  }
  return first;
}

void MoveResultsToEnd(ir::Graph& graph, const ir::Section& section) {
  ir::Node* first_result = nullptr;
  for (ir::Node* node : std::vector<ir::Node*>(section.nodes)) {
    if (node->op->traits.kind == ir::OpKind::kOutput) {
      if (first_result == nullptr) first_result = node;
    } else if (first_result != nullptr) {
      graph.MoveBefore(node, first_result);
    }
  }
}

}  // namespace

StatusOr<bool> Schedule::Run(ir::Graph& graph) const {
  bool changed = false;
  for (const auto& section : graph.sections()) {
    if (section->kind == ir::SectionKind::kVariables) continue;
    const std::vector<ir::Node*> before = section->nodes;
    if (section->kind == ir::SectionKind::kEval) MoveResultsToEnd(graph, *section);
    const std::vector<ir::Node*> nodes = section->nodes;
    // From the end, so that a view has moved before the gather that it reads.
    for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {
      if (!(*node)->op->traits.sinks_to_user) continue;
      ir::Node* user = FirstUser(graph, **node);
      if (user == nullptr) continue;
      const int from = graph.IndexOf(*node);
      const int to = graph.IndexOf(user);
      // In place already if only nodes of its kind are in between.
      const bool settled =
          std::all_of(section->nodes.begin() + from, section->nodes.begin() + to,
                      [](const ir::Node* between) { return between->op->traits.sinks_to_user; });
      if (settled) continue;
      graph.MoveBefore(*node, user);
    }
    // A gather between two results could take the memory of the first.
    if (section->kind == ir::SectionKind::kEval) MoveResultsToEnd(graph, *section);
    changed = changed || section->nodes != before;
  }
  return changed;
}

}  // namespace zg
