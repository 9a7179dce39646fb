#include "framework/passes/master_weights.h"

#include "framework/ir/builder.h"
#include "framework/passes/sixteen_bit_casts.h"

namespace zg {
namespace {

Status KeepCopy(ir::Graph& graph, ir::Node* update, const std::vector<ir::Node*>& casts) {
  ir::Value* master = update->inputs[0];
  const TensorType type = casts[0]->outputs[0]->type;
  const ir::StoredTensor tensor = *graph.FindTensor(master->name);
  const std::string copy_name = fmt::format("{}.{}", tensor.name, DTypeName(type.dtype));

  for (ir::Node* cast : casts) graph.Rename(cast->outputs[0], master->name + ".cast");
  ir::Builder builder(&graph, graph.section(ir::SectionKind::kUpdate));
  builder.set_scope(update->scope);
  ir::Value* copy = builder.Variable(copy_name, type, tensor.initializer, Role::kParameter);
  ZG_RETURN_IF_ERROR(builder.status());
  graph.FindTensor(copy_name)->copy_of = tensor.name;
  for (ir::Node* cast : casts) {
    graph.ReplaceAllUses(cast->outputs[0], copy);
    graph.Erase(cast);
  }

  master->producer->attributes.Set("role", Role::kMaster);
  builder.InsertBefore(graph.NextOf(update));  // before the new master counts as the old one
  ir::Value* next =
      builder.Op("cast", {update->outputs[0]}, {{"dtype", type.dtype}}, copy->name + ".next");
  builder.Ops("assign", {copy, next});
  ZG_RETURN_IF_ERROR(builder.status());

  ir::Node* widened = update->inputs[1]->producer;
  ZG_CHECK(widened->op->traits.kind == ir::OpKind::kCast, "the gradient of %{} is not cast",
           master->name);
  graph.ReplaceInput(update, 1, widened->inputs[0]);
  if (widened->outputs[0]->users.empty()) graph.Erase(widened);
  return Status::Ok();
}

}  // namespace

StatusOr<bool> MasterWeights::Run(ir::Graph& graph) const {
  bool changed = false;
  for (ir::Node* update : std::vector<ir::Node*>(graph.section(ir::SectionKind::kUpdate)->nodes)) {
    if (update->op->traits.kind != ir::OpKind::kUpdate) continue;
    const std::vector<ir::Node*> casts = SixteenBitCastsOf(*update->inputs[0]);
    if (casts.empty()) continue;
    ZG_RETURN_IF_ERROR(KeepCopy(graph, update, casts));
    changed = true;
  }
  return changed;
}

}  // namespace zg
