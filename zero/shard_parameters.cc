#include "zero/shard_parameters.h"

#include <algorithm>
#include <optional>

#include "framework/ir/builder.h"
#include "zero/flat_bucket.h"
#include "zero/update_nodes.h"

namespace zg::zero {
namespace {

// Makes readers of `node` read its input instead, and removes `node`.
void Bypass(ir::Graph& graph, ir::Node* node) {
  graph.ReplaceAllUses(node->outputs[0], node->inputs[0]);
  graph.Erase(node);
}

std::vector<ir::Node*> UsersOfKindIn(const ir::Graph& graph, const ir::Section& section,
                                     const ir::Value& value, ir::OpKind kind) {
  std::vector<ir::Node*> users = UsersIn(graph, section, value);
  users.erase(std::remove_if(users.begin(), users.end(),
                             [&](const ir::Node* node) { return node->op->traits.kind != kind; }),
              users.end());
  return users;
}

// The value that the section views: the bucket, or its own copy of it (bucket-frozen).
ir::Value* ViewedIn(const ir::Graph& graph, const ir::Section& section, ir::Value* bucket) {
  const std::vector<ir::Node*> casts = UsersOfKindIn(graph, section, *bucket, ir::OpKind::kCast);
  return casts.empty() ? bucket : casts[0]->outputs[0];
}

std::vector<ir::Node*> ViewsIn(const ir::Graph& graph, const ir::Section& section,
                               ir::Value* bucket) {
  return UsersOfKindIn(graph, section, *ViewedIn(graph, section, bucket), ir::OpKind::kView);
}

// The source and destination of a bucket's gathers.
struct Gathers {
  NdSbp whole_sbp;
  std::optional<NdSbp> part_sbp;  // the part that a rank keeps from forward to backward
};

// Every section that views the bucket gathers it once, right before its first view.
Status GatherPerSection(ir::Graph& graph, ir::Value* bucket, const Gathers& gathers) {
  const bool backward_gathers =
      !ViewsIn(graph, *graph.section(ir::SectionKind::kBackward), bucket).empty();
  ir::Value* part = nullptr;
  for (const auto& section : graph.sections()) {
    const std::vector<ir::Node*> views = ViewsIn(graph, *section, bucket);
    if (views.empty()) continue;
    ir::Value* viewed = ViewedIn(graph, *section, bucket);
    const bool has_part = section->kind == ir::SectionKind::kBackward && part != nullptr;
    ir::Builder builder(&graph, section.get());
    builder.InsertBefore(views.front());
    ir::Value* whole =
        builder.Place(has_part ? part : viewed, gathers.whole_sbp, viewed->name + ".whole");
    if (section->kind == ir::SectionKind::kForward && backward_gathers &&
        gathers.part_sbp.has_value()) {
      part = builder.Op("place", {whole}, {{"sbp", *gathers.part_sbp}, {"copy", true}},
                        viewed->name + ".part");
    }
    ZG_RETURN_IF_ERROR(builder.status());
    for (ir::Node* view : views) graph.ReplaceInput(view, 0, whole);
    if (viewed == bucket) continue;
    viewed->sbp = bucket->sbp;  // the copy is made before the gather
    if (has_part) graph.Erase(viewed->producer);
  }
  return Status::Ok();
}

// The mesh axis with this name; -1 if the name is empty.
StatusOr<int> SecondaryAxis(const Mesh& mesh, const std::string& name) {
  if (name.empty()) return -1;
  const int axis = mesh.FindAxis(name);
  if (axis >= 0 && mesh.ShardsOver(axis)) return axis;
  return InvalidArgument(
      "secondary axis {}: parameters are not sharded over it on mesh({}); expected one of its axes "
      "data and shard",
      name, mesh.ToString());
}

// Adds the gathers of a bucket that is sharded from here on; `secondary`: an axis, or -1.
Status Gather(ir::Graph& graph, ir::Value* bucket, int secondary) {
  Gathers gathers = {WholeSbp(graph, *bucket), std::nullopt};
  if (secondary >= 0) {
    gathers.part_sbp = gathers.whole_sbp;
    (*gathers.part_sbp)[secondary] = bucket->sbp[secondary];
    if (gathers.part_sbp == bucket->sbp) gathers.part_sbp.reset();  // the bucket is this part
  }
  return GatherPerSection(graph, bucket, gathers);
}

// Shards the bucket that the update updates, and removes its `place`. Returns false if it was
// sharded already.
StatusOr<bool> ShardUpdated(ir::Graph& graph, ir::Node* update, std::string_view pass) {
  ir::Node* assign = ParameterAssign(*update);
  ir::Value* bucket = assign->inputs[0];
  const NdSbp sharded = ShardedSbp(graph, *update);
  if (bucket->sbp == sharded) return false;
  ir::Node* shard = update->inputs[0]->producer;  // a master has none: it is sharded itself
  ir::Node* whole = assign->inputs[1]->producer;
  if (whole->op->traits.kind != ir::OpKind::kPlace) {
    return InvalidArgument("{}: the update of %{} is not sharded; run shard-optimizer-state first",
                           pass, bucket->name);
  }
  bucket->sbp = sharded;
  if (shard->op->traits.kind == ir::OpKind::kPlace) Bypass(graph, shard);
  Bypass(graph, whole);
  for (ir::Node* user : std::vector<ir::Node*>(bucket->users)) {  // those of weights for evaluation
    if (user->op->traits.kind == ir::OpKind::kPlace) Bypass(graph, user);
  }
  return true;
}

}  // namespace

StatusOr<bool> ShardParameters::Run(ir::Graph& graph) const {
  ZG_ASSIGN_OR_RETURN(const int secondary, SecondaryAxis(graph.mesh(), secondary_axis_));
  if (!HasShardAxes(graph)) return false;
  ZG_ASSIGN_OR_RETURN(const std::vector<ir::Node*> updates, UnboxedUpdateNodes(graph, name()));
  bool changed = false;
  for (ir::Node* update : updates) {
    if (StageOf(*update) < 3) continue;
    ZG_ASSIGN_OR_RETURN(const bool is_new, ShardUpdated(graph, update, name()));
    if (!is_new) continue;
    ZG_RETURN_IF_ERROR(Gather(graph, ParameterAssign(*update)->inputs[0], secondary));
    changed = true;
  }
  for (ir::Value* frozen : FrozenVariables(graph)) {
    if (!IsBucket(graph, *frozen) || frozen->producer->attributes.Int("stage") < 3) continue;
    const NdSbp sharded = ShardedSbp(graph, *frozen);
    if (frozen->sbp == sharded) continue;
    frozen->sbp = sharded;
    ZG_RETURN_IF_ERROR(Gather(graph, frozen, secondary));
    changed = true;
  }
  return changed;
}

}  // namespace zg::zero
