#include "framework/passes/drop_idle_updates.h"

#include <algorithm>
#include <unordered_set>
#include <vector>

#include "framework/passes/nodes_of_groups.h"

namespace zg {

StatusOr<bool> DropIdleUpdates::Run(ir::Graph& graph) const {
  const std::vector<ir::Node*> updates = graph.NodesOf(ir::OpKind::kUpdate);
  const auto is_idle = [&](const ir::Node* update) {
    return groups_.count(update->attributes.Int("group")) == 0;
  };
  if (std::none_of(updates.begin(), updates.end(), is_idle)) return false;
  const std::unordered_set<const ir::Node*> needed = NodesOfGroups(graph, groups_);
  for (const ir::SectionKind kind :
       {ir::SectionKind::kUpdate, ir::SectionKind::kBackward, ir::SectionKind::kForward}) {
    const std::vector<ir::Node*> nodes = graph.section(kind)->nodes;
    for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {  // users before their inputs
      if (needed.count(*node) == 0) graph.Erase(*node);
    }
  }
  for (ir::Node* variable :
       std::vector<ir::Node*>(graph.section(ir::SectionKind::kVariables)->nodes)) {
    const ir::Value& value = *variable->outputs[0];
    if (HoldsForOneStep(value) && value.users.empty()) graph.Erase(variable);
  }
  return true;
}

}  // namespace zg
