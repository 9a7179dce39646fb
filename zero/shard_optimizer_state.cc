#include "zero/shard_optimizer_state.h"

#include "framework/ir/builder.h"
#include "framework/ir/placement.h"
#include "framework/passes/zero_stage.h"
#include "zero/update_nodes.h"

namespace zg::zero {
namespace {

bool IsOptimizerState(const ir::Value& value) {
  return ir::IsVariable(value) && FirstStageThatShards(ir::RoleOf(value)) == 1;
}

Status Shard(ir::Graph& graph, ir::Node* update) {
  const NdSbp sharded = ShardedSbp(graph);
  ir::Builder before(&graph, update->section);
  before.InsertBefore(update);
  for (size_t i = 0; i < update->inputs.size(); ++i) {
    ir::Value* input = update->inputs[i];
    if (IsOptimizerState(*input)) input->sbp = sharded;
    if (input->sbp == sharded) continue;  // or a sharded accumulator
    ir::Value* shard = before.Place(input, sharded, input->name + ".shard");
    ZG_RETURN_IF_ERROR(before.status());
    graph.ReplaceInput(update, static_cast<int>(i), shard);
  }
  ir::PlaceOutputs(update, graph.mesh());

  ir::Node* assign = ParameterAssign(*update);
  ir::Value* parameters = assign->inputs[1];  // an output of the update, or a cast of it
  ir::PlaceOutputs(parameters->producer, graph.mesh());
  ir::Builder after(&graph, update->section);
  after.InsertBefore(graph.NextOf(parameters->producer));
  ir::Value* whole =
      after.Place(parameters, AllBroadcast(graph.mesh()), parameters->name + ".whole");
  ZG_RETURN_IF_ERROR(after.status());
  graph.ReplaceInput(assign, 1, whole);
  return Status::Ok();
}

}  // namespace

StatusOr<bool> ShardOptimizerState::Run(ir::Graph& graph) const {
  if (!HasShardAxes(graph)) return false;
  ZG_ASSIGN_OR_RETURN(const std::vector<ir::Node*> updates, UnboxedUpdateNodes(graph, name()));
  bool changed = false;
  for (ir::Node* update : updates) {
    if (IsReplicated(*update) || update->outputs[0]->sbp == ShardedSbp(graph)) continue;
    ZG_RETURN_IF_ERROR(Shard(graph, update));
    changed = true;
  }
  return changed;
}

}  // namespace zg::zero
