#include "zero/update_nodes.h"

#include <algorithm>
#include <map>

#include "framework/base/check.h"
#include "framework/ir/builder.h"
#include "framework/ops/update_states.h"

namespace zg::zero {

std::vector<ir::Node*> UpdateNodes(const ir::Graph& graph) {
  std::vector<ir::Node*> updates;
  for (ir::Node* node : graph.section(ir::SectionKind::kUpdate)->nodes) {
    if (node->op->traits.kind == ir::OpKind::kUpdate) updates.push_back(node);
  }
  return updates;
}

StatusOr<std::vector<ir::Node*>> UnboxedUpdateNodes(const ir::Graph& graph, std::string_view pass) {
  std::vector<ir::Node*> updates = UpdateNodes(graph);
  for (const ir::Node* update : updates) {
    if (ir::IsVariable(*VariableOf(update->inputs[0]))) continue;
    return InvalidArgument(
        "{}: the update of %{} reads through a collective; run the pass before insert-collectives",
        pass, update->outputs[0]->name);
  }
  return updates;
}

bool HasShardAxes(const ir::Graph& graph) { return !graph.mesh().ShardAxes().empty(); }

int NumShards(const ir::Graph& graph) {
  int product = 1;
  for (const int axis : graph.mesh().ShardAxes()) product *= graph.mesh().axes()[axis].size;
  return product;
}

NdSbp WholeSbp(const ir::Graph& graph, const ir::Value& bucket) {
  NdSbp sbp = AllBroadcast(graph.mesh());
  const NdSbp& split = bucket.producer->attributes.NdSbp("split");
  for (size_t axis = 0; axis < split.size(); ++axis) sbp[axis] = split[axis];
  return sbp;
}

NdSbp ShardedSbp(const ir::Graph& graph, const ir::Value& bucket) {
  NdSbp sbp = WholeSbp(graph, bucket);
  const int flat_dim = bucket.type.shape.num_dims() - 1;
  for (const int axis : graph.mesh().ShardAxes()) sbp[axis] = Sbp::S(flat_dim);
  return sbp;
}

NdSbp WholeSbp(const ir::Graph& graph, const ir::Node& update) {
  return WholeSbp(graph, *VariableOf(update.inputs[0]));
}

NdSbp ShardedSbp(const ir::Graph& graph, const ir::Node& update) {
  return ShardedSbp(graph, *VariableOf(update.inputs[0]));
}

int64_t StageOf(const ir::Node& update) {
  return VariableOf(update.inputs[0])->producer->attributes.Int("stage");
}

bool IsFactored(const ir::Node& update) {
  return StatesOfUpdate(*update.op) == StatesOf::kRowsAndColumns;
}

bool IsQuantised(const ir::Node& update) { return StatesOfUpdate(*update.op) == StatesOf::kBlocks; }

ir::Value* VariableOf(ir::Value* value) {
  const auto kind = [&] { return value->producer->op->traits.kind; };
  while (kind() == ir::OpKind::kPlace || kind() == ir::OpKind::kView) {
    value = value->producer->inputs[0];
  }
  return value;
}

ir::Node* ParameterAssign(const ir::Node& update) {
  ir::Node* assign = nullptr;
  std::vector<ir::Value*> values = {update.outputs[0]};
  while (!values.empty()) {
    const ir::Value* value = values.back();
    values.pop_back();
    for (ir::Node* user : value->users) {
      const ir::OpKind kind = user->op->traits.kind;
      if (kind == ir::OpKind::kAssign) {
        if (assign == nullptr || ir::HasRole(*user->inputs[0], Role::kParameter)) assign = user;
      } else if (kind == ir::OpKind::kCast || kind == ir::OpKind::kPlace) {
        values.push_back(user->outputs[0]);
      }
    }
  }
  ZG_CHECK(assign != nullptr, "%{} is not assigned", update.outputs[0]->name);
  return assign;
}

Status ReplaceUpdate(ir::Graph& graph, ir::Node* update, const std::vector<ir::Value*>& inputs) {
  ir::Builder builder(&graph, update->section);
  builder.InsertBefore(update);
  builder.set_scope(update->scope);
  const std::vector<ir::Value*> outputs =
      builder.Ops(update->op->name, inputs, update->attributes, "updated");
  ZG_RETURN_IF_ERROR(builder.status());
  std::vector<std::string> names;
  for (size_t i = 0; i < update->outputs.size(); ++i) {
    ir::Value* old_value = update->outputs[i];
    names.push_back(old_value->name);
    outputs[i]->sbp = old_value->sbp;  // its inputs may suggest another placement
    graph.ReplaceAllUses(old_value, outputs[i]);
  }
  graph.Erase(update);
  for (size_t i = 0; i < names.size(); ++i) graph.Rename(outputs[i], names[i]);
  return Status::Ok();
}

StatusOr<ir::Value*> PartBegins(ir::Graph& graph, ir::Node* update) {
  ir::Builder builder(&graph, update->section);
  builder.InsertBefore(update);
  builder.set_scope(update->scope);
  const ir::Value& bucket = *update->inputs[0];
  const Shape& shape = bucket.type.shape;
  int64_t num_parts = 1;  // not by its elements, of which there may be none
  for (size_t axis = 0; axis < bucket.sbp.size(); ++axis) {
    if (bucket.sbp[axis].is_split()) num_parts *= graph.mesh().axes()[axis].size;
  }
  const int64_t own = graph.LocalType(bucket).shape.num_elements();
  ir::Value* begins =
      builder.Op("iota", {}, {{"size", num_parts}, {"step", own}}, bucket.name + ".begins");
  ZG_RETURN_IF_ERROR(builder.status());
  if (shape.num_dims() == 2) {  // for each part of the bucket
    const std::vector<int64_t> sizes = {shape.dim(0), num_parts / shape.dim(0)};
    begins = builder.Op(
        "reshape", {begins},
        {{"from", std::vector<int64_t>{1}}, {"to", std::vector<int64_t>{2}}, {"sizes", sizes}},
        begins->name + ".of_parts");
    ZG_RETURN_IF_ERROR(builder.status());
  }
  if (num_parts == 1) return begins;
  begins = builder.Place(begins, bucket.sbp, begins->name + ".shard");
  ZG_RETURN_IF_ERROR(builder.status());
  return begins;
}

Status SumGradientOnce(ir::Graph& graph, ir::Node* update) {
  ir::Value* gradient = update->inputs[1];
  const bool is_partial = std::any_of(gradient->sbp.begin(), gradient->sbp.end(),
                                      [](Sbp sbp) { return sbp.is_partial(); });
  if (!is_partial) return Status::Ok();
  ir::Builder builder(&graph, update->section);
  builder.InsertBefore(update);
  builder.set_scope(update->scope);
  ir::Value* whole = builder.Place(gradient, update->inputs[0]->sbp, gradient->name + ".whole");
  ZG_RETURN_IF_ERROR(builder.status());
  graph.ReplaceInput(update, 1, whole);
  return Status::Ok();
}

std::vector<ir::Node*> UsersIn(const ir::Graph& graph, const ir::Section& section,
                               const ir::Value& value) {
  std::map<int, ir::Node*> users;
  for (ir::Node* user : value.users) {
    if (user->section == &section) users[graph.IndexOf(user)] = user;
  }
  std::vector<ir::Node*> ordered;
  for (const auto& [position, user] : users) ordered.push_back(user);
  return ordered;
}

}  // namespace zg::zero
