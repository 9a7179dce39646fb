#include "zero/shard_optimizer_state.h"

#include <algorithm>
#include <vector>

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
  const NdSbp sharded = ShardedSbp(graph, *update);
  const NdSbp whole_sbp = WholeSbp(graph, *update);
  ir::Builder before(&graph, update->section);
  before.InsertBefore(update);
  for (size_t i = 0; i < update->inputs.size(); ++i) {
    ir::Value* input = update->inputs[i];
    if (IsFactored(*update) && i >= 2) break;  // row and column statistics stay whole
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
  ir::Value* whole = after.Place(parameters, whole_sbp, parameters->name + ".whole");
  ZG_RETURN_IF_ERROR(after.status());
  graph.ReplaceInput(assign, 1, whole);
  return Status::Ok();
}

// The nodes outside of the update section that read a state of the update (eval-weights).
std::vector<ir::Node*> OtherReaders(const ir::Node& update) {
  std::vector<ir::Node*> readers;
  for (const ir::Value* input : update.inputs) {
    if (!IsOptimizerState(*input)) continue;
    for (ir::Node* user : input->users) {
      const bool is_known = std::find(readers.begin(), readers.end(), user) != readers.end();
      if (user->section != update.section && !is_known) readers.push_back(user);
    }
  }
  return readers;
}

// Weights for evaluation are computed on the parts as well, and are whole for their readers.
Status ShardEvalWeights(ir::Graph& graph, ir::Node* node, const ir::Node& update) {
  const NdSbp sharded = ShardedSbp(graph, update);
  ir::Builder builder(&graph, node->section);
  builder.InsertBefore(node);
  for (size_t i = 0; i < node->inputs.size(); ++i) {
    ir::Value* input = node->inputs[i];
    if (input->sbp == sharded) continue;
    ir::Value* shard = builder.Place(input, sharded, input->name + ".shard");
    ZG_RETURN_IF_ERROR(builder.status());
    graph.ReplaceInput(node, static_cast<int>(i), shard);
  }
  ir::PlaceOutputs(node, graph.mesh());
  ir::Value* part = node->outputs[0];
  const std::vector<ir::Node*> readers = UsersIn(graph, *node->section, *part);
  builder.InsertBefore(graph.NextOf(node));
  ir::Value* whole = builder.Place(part, WholeSbp(graph, update), part->name + ".whole");
  ZG_RETURN_IF_ERROR(builder.status());
  for (ir::Node* reader : readers) graph.ReplaceInput(reader, 0, whole);  // views, or a cast
  return Status::Ok();
}

}  // namespace

StatusOr<bool> ShardOptimizerState::Run(ir::Graph& graph) const {
  if (!HasShardAxes(graph)) return false;
  ZG_ASSIGN_OR_RETURN(const std::vector<ir::Node*> updates, UnboxedUpdateNodes(graph, name()));
  bool changed = false;
  for (ir::Node* update : updates) {
    if (StageOf(*update) < 1 || update->outputs[0]->sbp == ShardedSbp(graph, *update)) continue;
    const std::vector<ir::Node*> readers = OtherReaders(*update);
    ZG_RETURN_IF_ERROR(Shard(graph, update));
    for (ir::Node* node : readers) ZG_RETURN_IF_ERROR(ShardEvalWeights(graph, node, *update));
    changed = true;
  }
  return changed;
}

}  // namespace zg::zero
