#include "framework/passes/schedule.h"

#include <algorithm>

namespace zg {
namespace {

bool HoldsMemoryUntilNeeded(const Node& node) {
  const std::string& op = node.op->name;
  return op == "input" || op == "constant" || op == "bucket_view" || op == "local_slice" ||
         op == "all_gather";
}

// The node's first user in its own section; null when only other sections use it.
Node* FirstUser(const Graph& graph, const Node& node) {
  Node* first = nullptr;
  int first_index = 0;
  for (Node* user : node.outputs[0]->users) {
    if (user->section != node.section) continue;
    const int index = graph.IndexOf(user);
    if (first == nullptr || index < first_index) {
      first = user;
      first_index = index;
    }
  }
  return first;
}

}  // namespace

StatusOr<bool> Schedule::Run(Graph& graph) const {
  bool changed = false;
  for (const auto& section : graph.sections()) {
    if (section->kind == SectionKind::kVariables) continue;
    const std::vector<Node*> nodes = section->nodes;
    // From the end, so that a view has moved before the gather that it reads.
    for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {
      if (!HoldsMemoryUntilNeeded(**node)) continue;
      Node* user = FirstUser(graph, **node);
      if (user == nullptr) continue;
      const int from = graph.IndexOf(*node);
      const int to = graph.IndexOf(user);
      // In place already when only its like stands between.
      const bool settled =
          std::all_of(section->nodes.begin() + from, section->nodes.begin() + to,
                      [](const Node* between) { return HoldsMemoryUntilNeeded(*between); });
      if (settled) continue;
      graph.MoveBefore(*node, user);
      changed = true;
    }
  }
  return changed;
}

}  // namespace zg
