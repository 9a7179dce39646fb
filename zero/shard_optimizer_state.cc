#include "zero/shard_optimizer_state.h"

#include "framework/ir/builder.h"
#include "zero/update_nodes.h"

namespace zg::zero {
namespace {

Value* Place(Builder* builder, Value* value, const NdSbp& sbp, const std::string& name) {
  Value* placed = builder->Op("place", {value}, {{"sbp", ToString(sbp)}}, name);
  if (placed == nullptr) return nullptr;
  placed->sbp = sbp;
  placed->category = value->category;
  return placed;
}

Status Shard(Graph& graph, Node* update) {
  const NdSbp sharded = ShardedSbp(graph);
  Builder before(&graph, update->section);
  before.InsertBefore(update);
  for (int i = 0; i < 2; ++i) {  // parameter and gradient; an accumulator is sharded already
    Value* input = update->inputs[i];
    if (input->sbp == sharded) continue;
    Value* shard = Place(&before, input, sharded, input->name + ".shard");
    ZG_RETURN_IF_ERROR(before.status());
    graph.ReplaceInput(update, i, shard);
  }
  for (size_t i = 2; i < update->inputs.size(); ++i) update->inputs[i]->sbp = sharded;
  for (Value* output : update->outputs) output->sbp = sharded;

  Value* parameter = update->outputs[0];
  const std::vector<Node*> users = parameter->users;
  Builder after(&graph, update->section);
  after.InsertBefore(graph.NextOf(update));
  Value* whole = Place(&after, parameter, AllBroadcast(graph.mesh()), parameter->name + ".whole");
  ZG_RETURN_IF_ERROR(after.status());
  for (Node* user : users) {
    for (size_t i = 0; i < user->inputs.size(); ++i) {
      if (user->inputs[i] == parameter) graph.ReplaceInput(user, static_cast<int>(i), whole);
    }
  }
  return Status::Ok();
}

}  // namespace

StatusOr<bool> ShardOptimizerState::Run(Graph& graph) const {
  if (ShardAxis(graph) < 0) return false;
  ZG_ASSIGN_OR_RETURN(const std::vector<Node*> updates, UnboxedUpdateNodes(graph, name()));
  bool changed = false;
  for (Node* update : updates) {
    if (IsReplicated(*update) || update->outputs[0]->sbp == ShardedSbp(graph)) continue;
    ZG_RETURN_IF_ERROR(Shard(graph, update));
    changed = true;
  }
  return changed;
}

}  // namespace zg::zero
