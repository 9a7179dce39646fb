#include "zero/update_nodes.h"

#include <map>

#include "framework/base/check.h"

namespace zg::zero {

std::vector<Node*> UpdateNodes(const Graph& graph) {
  std::vector<Node*> updates;
  for (Node* node : graph.section(SectionKind::kUpdate)->nodes) {
    if (node->op->is_update) updates.push_back(node);
  }
  return updates;
}

StatusOr<std::vector<Node*>> UnboxedUpdateNodes(const Graph& graph, std::string_view pass) {
  std::vector<Node*> updates = UpdateNodes(graph);
  for (const Node* update : updates) {
    if (VariableOf(update->inputs[0])->producer->op->name == "variable") continue;
    return InvalidArgument(
        "{}: the update of %{} reads through a collective; run the pass before insert-collectives",
        pass, update->outputs[0]->name);
  }
  return updates;
}

int ShardAxis(const Graph& graph) {
  const int axis = graph.mesh().FindAxis("data");
  return axis >= 0 && graph.mesh().axes()[axis].size > 1 ? axis : -1;
}

NdSbp ShardedSbp(const Graph& graph) {
  NdSbp sbp = AllBroadcast(graph.mesh());
  sbp[ShardAxis(graph)] = Sbp::S(0);
  return sbp;
}

bool IsReplicated(const Node& update) {
  return VariableOf(update.inputs[0])->producer->attributes.Bool("replicated");
}

Value* VariableOf(Value* value) {
  while (value->producer->op->name == "place" || value->producer->op->name == "bucket_view") {
    value = value->producer->inputs[0];
  }
  return value;
}

Node* ParameterAssign(const Node& update) {
  Node* assign = nullptr;
  std::vector<Value*> values = {update.outputs[0]};
  while (!values.empty()) {
    const Value* value = values.back();
    values.pop_back();
    for (Node* user : value->users) {
      if (user->op->name == "assign") {
        if (assign == nullptr || user->inputs[0]->category == MemoryCategory::kParameters) {
          assign = user;
        }
      } else if (user->op->name == "cast" || user->op->name == "place") {
        values.push_back(user->outputs[0]);
      }
    }
  }
  ZG_CHECK(assign != nullptr, "%{} is not assigned", update.outputs[0]->name);
  return assign;
}

std::vector<Node*> UsersIn(const Graph& graph, const Section& section, const Value& value) {
  std::map<int, Node*> users;
  for (Node* user : value.users) {
    if (user->section == &section) users[graph.IndexOf(user)] = user;
  }
  std::vector<Node*> ordered;
  for (const auto& [position, user] : users) ordered.push_back(user);
  return ordered;
}

}  // namespace zg::zero
