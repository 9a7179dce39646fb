#include "zero/shard_parameters.h"

#include <algorithm>

#include "framework/ir/builder.h"
#include "zero/update_nodes.h"

namespace zg::zero {
namespace {

// Reads `node`'s input instead of `node`, and drops it.
void Bypass(ir::Graph& graph, ir::Node* node) {
  graph.ReplaceAllUses(node->outputs[0], node->inputs[0]);
  graph.Erase(node);
}

// Every section that views the bucket gathers it once, right before its first view.
Status GatherPerSection(ir::Graph& graph, ir::Value* bucket, const NdSbp& whole_sbp) {
  for (const auto& section : graph.sections()) {
    std::vector<ir::Node*> views = UsersIn(graph, *section, *bucket);
    views.erase(std::remove_if(views.begin(), views.end(),
                               [](const ir::Node* node) {
                                 return node->op->traits.kind != ir::OpKind::kView;
                               }),
                views.end());
    if (views.empty()) continue;
    ir::Builder builder(&graph, section.get());
    builder.InsertBefore(views.front());
    ir::Value* whole = builder.Place(bucket, whole_sbp, bucket->name + ".whole");
    ZG_RETURN_IF_ERROR(builder.status());
    for (ir::Node* view : views) graph.ReplaceInput(view, 0, whole);
  }
  return Status::Ok();
}

}  // namespace

StatusOr<bool> ShardParameters::Run(ir::Graph& graph) const {
  if (!HasShardAxes(graph)) return false;
  ZG_ASSIGN_OR_RETURN(const std::vector<ir::Node*> updates, UnboxedUpdateNodes(graph, name()));
  bool changed = false;
  for (ir::Node* update : updates) {
    if (IsReplicated(*update)) continue;
    ir::Node* assign = ParameterAssign(*update);
    ir::Value* bucket = assign->inputs[0];
    const NdSbp sharded = ShardedSbp(graph, *update);
    if (bucket->sbp == sharded) continue;
    ir::Node* shard =
        update->inputs[0]->producer;  // of a master there is none: it is sharded itself
    ir::Node* whole = assign->inputs[1]->producer;
    if (whole->op->traits.kind != ir::OpKind::kPlace) {
      return InvalidArgument(
          "shard-parameters: the update of %{} is not sharded; run shard-optimizer-state first",
          bucket->name);
    }
    bucket->sbp = sharded;
    if (shard->op->traits.kind == ir::OpKind::kPlace) Bypass(graph, shard);
    Bypass(graph, whole);
    for (ir::Node* user : std::vector<ir::Node*>(bucket->users)) {  // of weights for evaluation
      if (user->op->traits.kind == ir::OpKind::kPlace) Bypass(graph, user);
    }
    ZG_RETURN_IF_ERROR(GatherPerSection(graph, bucket, WholeSbp(graph, *update)));
    changed = true;
  }
  return changed;
}

}  // namespace zg::zero
