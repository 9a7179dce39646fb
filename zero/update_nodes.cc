#include "zero/update_nodes.h"

#include <map>

#include "framework/base/check.h"

namespace zg::zero {

std::vector<ir::Node*> UpdateNodes(const ir::Graph& graph) {
  std::vector<ir::Node*> updates;
  for (ir::Node* node : graph.section(ir::SectionKind::kUpdate)->nodes) {
    if (node->op->traits.kind == ir::OpKind::kUpdate) updates.push_back(node);
  }
  return updates;
}

StatusOr<std::vector<ir::Node*>> UnboxedUpdateNodes(const ir::Graph& graph, std::string_view pass) {
  std::vector<ir::Node*> updates = UpdateNodes(graph);
  for (const ir::Node* update : updates) {
    if (ir::IsVariable(*VariableOf(update->inputs[0]))) continue;
    return InvalidArgument(
        "{}: the update of %{} reads through a collective; run the pass before insert-collectives",
        pass, update->outputs[0]->name);
  }
  return updates;
}

bool HasShardAxes(const ir::Graph& graph) { return !graph.mesh().ShardAxes().empty(); }

NdSbp ShardedSbp(const ir::Graph& graph) {
  NdSbp sbp = AllBroadcast(graph.mesh());
  for (const int axis : graph.mesh().ShardAxes()) sbp[axis] = Sbp::S(0);
  return sbp;
}

bool IsReplicated(const ir::Node& update) {
  return VariableOf(update.inputs[0])->producer->attributes.Bool("replicated");
}

ir::Value* VariableOf(ir::Value* value) {
  const auto kind = [&] { return value->producer->op->traits.kind; };
  while (kind() == ir::OpKind::kPlace || kind() == ir::OpKind::kView) {
    value = value->producer->inputs[0];
  }
  return value;
}

ir::Node* ParameterAssign(const ir::Node& update) {
  ir::Node* assign = nullptr;
  std::vector<ir::Value*> values = {update.outputs[0]};
  while (!values.empty()) {
    const ir::Value* value = values.back();
    values.pop_back();
    for (ir::Node* user : value->users) {
      const ir::OpKind kind = user->op->traits.kind;
      if (kind == ir::OpKind::kAssign) {
        if (assign == nullptr || ir::HasRole(*user->inputs[0], Role::kParameter)) assign = user;
      } else if (kind == ir::OpKind::kCast || kind == ir::OpKind::kPlace) {
        values.push_back(user->outputs[0]);
      }
    }
  }
  ZG_CHECK(assign != nullptr, "%{} is not assigned", update.outputs[0]->name);
  return assign;
}

std::vector<ir::Node*> UsersIn(const ir::Graph& graph, const ir::Section& section,
                               const ir::Value& value) {
  std::map<int, ir::Node*> users;
  for (ir::Node* user : value.users) {
    if (user->section == &section) users[graph.IndexOf(user)] = user;
  }
  std::vector<ir::Node*> ordered;
  for (const auto& [position, user] : users) ordered.push_back(user);
  return ordered;
}

}  // namespace zg::zero
