#include "framework/passes/master_weights.h"

#include <algorithm>

#include "framework/ir/builder.h"

namespace zg {
namespace {

// The casts through which the model reads the parameter; empty if it is read in f32 as well.
std::vector<Node*> CastsOf(const Value& parameter) {
  std::vector<Node*> casts;
  for (Node* user : parameter.users) {
    if (user->section->kind == SectionKind::kUpdate) continue;
    if (user->op->name != "cast") return {};
    casts.push_back(user);
  }
  return casts;
}

Status KeepCopy(Graph& graph, Node* update, const std::vector<Node*>& casts) {
  Value* master = update->inputs[0];
  const TensorType type = casts[0]->outputs[0]->type;
  const std::string dtype(DTypeName(type.dtype));
  const StoredTensor tensor = *graph.FindTensor(master->name);

  for (Node* cast : casts) graph.Rename(cast->outputs[0], master->name + ".cast");
  Builder builder(&graph, graph.section(SectionKind::kUpdate));
  builder.set_scope(update->scope);
  Value* copy = builder.Variable(tensor.name + "." + dtype, type, tensor.initializer,
                                 MemoryCategory::kParameters);
  ZG_RETURN_IF_ERROR(builder.status());
  graph.FindTensor(tensor.name + "." + dtype)->copy_of = tensor.name;
  for (Node* cast : casts) {
    graph.ReplaceAllUses(cast->outputs[0], copy);
    graph.Erase(cast);
  }

  master->category = MemoryCategory::kOptimizerState;
  builder.InsertBefore(graph.NextOf(update));  // before the new master counts as the old one
  Value* next = builder.Op("cast", {update->outputs[0]}, {{"dtype", dtype}}, copy->name + ".next");
  builder.Ops("assign", {copy, next});
  ZG_RETURN_IF_ERROR(builder.status());

  Node* widened = update->inputs[1]->producer;
  ZG_CHECK(widened->op->name == "cast", "the gradient of %{} is not cast", master->name);
  graph.ReplaceInput(update, 1, widened->inputs[0]);
  if (widened->outputs[0]->users.empty()) graph.Erase(widened);
  return Status::Ok();
}

}  // namespace

StatusOr<bool> MasterWeights::Run(Graph& graph) const {
  bool changed = false;
  for (Node* update : std::vector<Node*>(graph.section(SectionKind::kUpdate)->nodes)) {
    if (!update->op->is_update) continue;
    const std::vector<Node*> casts = CastsOf(*update->inputs[0]);
    if (casts.empty()) continue;
    ZG_RETURN_IF_ERROR(KeepCopy(graph, update, casts));
    changed = true;
  }
  return changed;
}

}  // namespace zg
