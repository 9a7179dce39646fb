#include "framework/passes/fuse_copies.h"

#include <string>
#include <vector>

#include "framework/ir/builder.h"
#include "framework/ops/parameter_copy.h"

namespace zg {
namespace {

bool IsCopy(const ir::Node& cast) {
  const ir::Value& parameter = *cast.inputs[0];
  const ir::Node& update = *parameter.producer;
  const DType dtype = cast.outputs[0]->type.dtype;
  return CanCopy(*update.op) && !CopyOf(update.attributes) && &parameter == update.outputs[0] &&
         IsFloat(dtype) && dtype != DType::kF32 && cast.section == update.section &&
         cast.outputs[0]->sbp == parameter.sbp;
}

Status Fuse(ir::Graph& graph, ir::Node* cast) {
  ir::Node* const update = cast->inputs[0]->producer;
  ir::Builder builder(&graph, update->section);
  builder.InsertBefore(update);
  builder.set_scope(update->scope);
  ir::Attributes attributes = update->attributes;
  attributes.Set("copy_dtype", cast->outputs[0]->type.dtype);
  const std::vector<ir::Value*> fused =
      builder.Ops(update->op->name, update->inputs, std::move(attributes));
  ZG_RETURN_IF_ERROR(builder.status());
  std::vector<ir::Value*> results = update->outputs;
  results.push_back(cast->outputs[0]);
  std::vector<std::string> names;
  for (size_t i = 0; i < results.size(); ++i) {
    names.push_back(results[i]->name);
    graph.ReplaceAllUses(results[i], fused[i]);
  }
  graph.Erase(cast);
  graph.Erase(update);
  for (size_t i = 0; i < names.size(); ++i) graph.Rename(fused[i], names[i]);
  return Status::Ok();
}

}  // namespace

StatusOr<bool> FuseCopies::Run(ir::Graph& graph) const {
  bool changed = false;
  for (ir::Node* cast : graph.NodesOf(ir::OpKind::kCast)) {
    if (!IsCopy(*cast)) continue;
    ZG_RETURN_IF_ERROR(Fuse(graph, cast));
    changed = true;
  }
  return changed;
}

}  // namespace zg
