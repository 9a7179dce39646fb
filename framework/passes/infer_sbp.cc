#include "framework/passes/infer_sbp.h"

#include "framework/ir/placement.h"

namespace zg {
namespace {

Status TooLarge(int num_ranks) {
  return InvalidArgument(
      "the parts of {} ranks have more than 2^56 elements together; use a smaller batch",
      num_ranks);
}

// A data input becomes its logical value: the parts of all data ranks side by side.
Status PlaceInput(ir::Graph& graph, ir::Node* node) {
  ir::Value* value = node->outputs[0];
  value->sbp = AllBroadcast(graph.mesh());
  const Sbp sbp = node->attributes.Sbp("placement");
  const auto with_context = [&](const Status& status) {
    return status.WithContext(
        fmt::format("input \"{}\" {}", node->attributes.String("name"), value->type.ToString()));
  };
  if (sbp.is_partial()) {
    return with_context(InvalidArgument("got placement 'P', expected B or S(dim)"));
  }
  if (sbp.is_broadcast()) return Status::Ok();
  if (sbp.dim() >= value->type.shape.num_dims()) {
    return with_context(InvalidArgument("it has no dim {} to split, as its placement {} asks",
                                        sbp.dim(), sbp.ToString()));
  }
  const int num_ranks = graph.mesh().num_data_ranks();
  for (const int axis : graph.mesh().DataAxes()) value->sbp[axis] = sbp;
  const int64_t local_size = value->type.shape.dim(sbp.dim());
  if (local_size > Shape::kMaxElements / num_ranks) return with_context(TooLarge(num_ranks));
  value->type.shape.set_dim(sbp.dim(), local_size * num_ranks);
  if (!value->type.shape.IsValid()) return with_context(TooLarge(num_ranks));
  node->attributes.Set("shape", value->type.shape);
  return Status::Ok();
}

// Random numbers are drawn by micro-batch and by element of the rank's part: data ranks must hold
// different parts, and other ranks the same.
Status CheckRandom(const ir::Graph& graph, const ir::Node& node) {
  const Mesh& mesh = graph.mesh();
  for (int axis = 0; axis < mesh.num_axes(); ++axis) {
    if (mesh.axes()[axis].size == 1) continue;
    const Sbp sbp = node.outputs[0]->sbp[axis];
    if (mesh.IsDataAxis(axis) && !sbp.is_split()) {
      return InvalidArgument(
          "{}: {} of %{}, which is the same on all ranks, would draw another mask on each; apply "
          "it to values that are split over the axis {}",
          node.scope, node.op->name, node.inputs[0]->name, mesh.axes()[axis].name);
    }
    if (!mesh.IsDataAxis(axis) && !sbp.is_broadcast()) {
      return InvalidArgument(
          "{}: {} of %{}, which is {} along the axis {}, would draw the same mask for different "
          "parts; apply it to values that are B along that axis",
          node.scope, node.op->name, node.inputs[0]->name, sbp.ToString(), mesh.axes()[axis].name);
    }
  }
  return Status::Ok();
}

Status PlaceNode(ir::Graph& graph, ir::Node* node) {
  ir::PlaceOutputs(node, graph.mesh());
  if (node->op->traits.is_random) ZG_RETURN_IF_ERROR(CheckRandom(graph, *node));
  StatusOr<std::vector<TensorType>> types = node->op->infer_shape(node->Call());
  if (!types.ok()) return types.status().WithContext(node->scope);
  for (size_t i = 0; i < types->size(); ++i) {
    if (!(*types)[i].shape.IsValid()) {
      return TooLarge(graph.mesh().num_ranks()).WithContext("%" + node->outputs[i]->name);
    }
    node->outputs[i]->type = (*types)[i];
  }
  return Status::Ok();
}

}  // namespace

StatusOr<bool> InferSbp::Run(ir::Graph& graph) const {
  bool changed = false;
  for (ir::Node* node : graph.AllNodes()) {
    if (!node->outputs.empty() && !node->outputs[0]->sbp.empty()) continue;
    changed = changed || !node->outputs.empty();
    if (node->op->traits.kind == ir::OpKind::kInput) {
      ZG_RETURN_IF_ERROR(PlaceInput(graph, node));
    } else {
      ZG_RETURN_IF_ERROR(PlaceNode(graph, node));
    }
  }
  return changed;
}

}  // namespace zg
