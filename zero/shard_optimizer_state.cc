#include "zero/shard_optimizer_state.h"

#include "framework/ir/builder.h"
#include "zero/update_nodes.h"

namespace zg::zero {
namespace {

ir::Value* Place(ir::Builder* builder, ir::Value* value, const NdSbp& sbp,
                 const std::string& name) {
  ir::Value* placed = builder->Op("place", {value}, {{"sbp", sbp}}, name);
  if (placed == nullptr) return nullptr;
  placed->sbp = sbp;
  placed->category = value->category;
  return placed;
}

Status Shard(ir::Graph& graph, ir::Node* update) {
  const NdSbp sharded = ShardedSbp(graph);
  ir::Builder before(&graph, update->section);
  before.InsertBefore(update);
  for (size_t i = 0; i < update->inputs.size(); ++i) {
    ir::Value* input = update->inputs[i];
    if (input->category == MemoryCategory::kOptimizerState) input->sbp = sharded;
    if (input->sbp == sharded) continue;  // or a sharded accumulator
    ir::Value* shard = Place(&before, input, sharded, input->name + ".shard");
    ZG_RETURN_IF_ERROR(before.status());
    graph.ReplaceInput(update, static_cast<int>(i), shard);
  }
  for (ir::Value* output : update->outputs) output->sbp = sharded;

  ir::Node* assign = ParameterAssign(*update);
  ir::Value* parameters = assign->inputs[1];  // an output of the update, or a cast of it
  parameters->sbp = sharded;
  ir::Builder after(&graph, update->section);
  after.InsertBefore(graph.NextOf(parameters->producer));
  ir::Value* whole =
      Place(&after, parameters, AllBroadcast(graph.mesh()), parameters->name + ".whole");
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
