#include "framework/passes/insert_collectives.h"

#include "framework/ir/builder.h"
#include "framework/ops/op_names.h"
#include "framework/passes/boxing.h"
#include "framework/passes/placement.h"

namespace zg {
namespace {

// Appends the boxing ops that bring `value` to the placement `to`, one mesh axis after the other.
ir::Value* Box(ir::Builder* builder, ir::Value* value, const NdSbp& to) {
  const Mesh& mesh = builder->graph().mesh();
  for (int axis = 0; axis < mesh.num_axes() && value != nullptr; ++axis) {
    Boxing boxing =
        FindBoxing(value->sbp[axis], to[axis], value->type.bytes(), mesh.axes()[axis].size);
    if (boxing.op.empty()) continue;
    boxing.attributes.Set("axis", int64_t{axis});
    // A full-size gradient that stays resident keeps the rank's part in place; one in flight is
    // given up.
    if (value->sbp[axis].is_partial() && to[axis].is_split()) {
      boxing.attributes.Set("in_place", value->category == MemoryCategory::kGradients);
    }
    ir::Value* boxed = builder->Op(boxing.op, {value}, std::move(boxing.attributes),
                                   value->name + "." + boxing.op);
    if (boxed == nullptr) return nullptr;
    boxed->sbp = value->sbp;
    boxed->sbp[axis] = to[axis];
    boxed->category = value->category;
    value = boxed;
  }
  return value;
}

ir::Builder BuilderBefore(ir::Graph& graph, ir::Node* node) {
  ir::Builder builder(&graph, node->section);
  builder.InsertBefore(node);
  builder.set_scope(node->scope);
  return builder;
}

Status LowerPlace(ir::Graph& graph, ir::Node* place) {
  ir::Builder builder = BuilderBefore(graph, place);
  ir::Value* boxed = Box(&builder, place->inputs[0], place->attributes.NdSbp("sbp"));
  ZG_RETURN_IF_ERROR(builder.status());
  if (boxed != place->inputs[0]) boxed->category = place->outputs[0]->category;
  graph.ReplaceAllUses(place->outputs[0], boxed);
  graph.Erase(place);
  return Status::Ok();
}

// True when `node` accumulates a partial value and has become a collective.
StatusOr<bool> LowerAccumulate(ir::Graph& graph, ir::Node* node) {
  if (node->op->traits.kind != ir::OpKind::kAccumulate) return false;
  ir::Value* accumulator = node->inputs[0];
  ir::Value* term = node->inputs[1];
  for (int axis = 0; axis < graph.mesh().num_axes(); ++axis) {
    if (!term->sbp[axis].is_partial() || accumulator->sbp[axis].is_partial()) continue;
    ir::Builder builder = BuilderBefore(graph, node);
    ir::Attributes attributes = {{"axis", int64_t{axis}}};
    const bool split = accumulator->sbp[axis].is_split();
    if (split) attributes.Set("dim", int64_t{accumulator->sbp[axis].dim()});
    ir::Value* folded =
        builder.Op(split ? op_names::kReduceScatter : op_names::kAllReduce, {term, accumulator},
                   std::move(attributes), node->outputs[0]->name);
    ZG_RETURN_IF_ERROR(builder.status());
    folded->sbp = accumulator->sbp;
    folded->category = accumulator->category;
    graph.ReplaceAllUses(node->outputs[0], folded);
    graph.Erase(node);
    return true;
  }
  return false;
}

StatusOr<bool> BoxInputs(ir::Graph& graph, ir::Node* node) {
  std::vector<NdSbp> wanted(node->inputs.size());
  for (int axis = 0; axis < graph.mesh().num_axes(); ++axis) {
    std::vector<Sbp> outputs;
    for (const ir::Value* output : node->outputs) outputs.push_back(output->sbp[axis]);
    const ir::SbpSignature signature =
        ChooseSignature(*node, axis, graph.mesh().axes()[axis].size, &outputs);
    for (size_t i = 0; i < wanted.size(); ++i) wanted[i].push_back(signature.inputs[i]);
  }
  bool changed = false;
  ir::Builder builder = BuilderBefore(graph, node);
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (node->inputs[i]->sbp == wanted[i]) continue;
    ir::Value* boxed = Box(&builder, node->inputs[i], wanted[i]);
    ZG_RETURN_IF_ERROR(builder.status());
    graph.ReplaceInput(node, static_cast<int>(i), boxed);
    changed = true;
  }
  return changed;
}

}  // namespace

StatusOr<bool> InsertCollectives::Run(ir::Graph& graph) const {
  bool changed = false;
  for (ir::Node* node : graph.AllNodes()) {
    if (node->op->traits.kind == ir::OpKind::kPlace) {
      ZG_RETURN_IF_ERROR(LowerPlace(graph, node));
      changed = true;
      continue;
    }
    ZG_ASSIGN_OR_RETURN(const bool lowered, LowerAccumulate(graph, node));
    changed = changed || lowered;
    if (lowered || node->inputs.empty()) continue;
    ZG_ASSIGN_OR_RETURN(const bool boxed, BoxInputs(graph, node));
    changed = changed || boxed;
  }
  return changed;
}

}  // namespace zg
