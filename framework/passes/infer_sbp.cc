#include "framework/passes/infer_sbp.h"

#include "framework/passes/placement.h"

namespace zg {
namespace {

Status TooLarge(int num_ranks) {
  return InvalidArgument(
      "the parts of {} ranks have more than 2^56 elements together; use a smaller batch",
      num_ranks);
}

// A data input becomes its logical value: the parts of all ranks of the axis "data" side by side.
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
  const int axis = graph.mesh().FindAxis("data");
  if (sbp.is_broadcast() || axis < 0) return Status::Ok();
  if (sbp.dim() >= value->type.shape.num_dims()) {
    return with_context(InvalidArgument("it has no dim {} to split, as its placement {} asks",
                                        sbp.dim(), sbp.ToString()));
  }
  const int num_ranks = graph.mesh().axes()[axis].size;
  if (num_ranks == 1) return Status::Ok();
  value->sbp[axis] = sbp;
  const int64_t local_size = value->type.shape.dim(sbp.dim());
  if (local_size > Shape::kMaxElements / num_ranks) return with_context(TooLarge(num_ranks));
  value->type.shape.set_dim(sbp.dim(), local_size * num_ranks);
  if (!value->type.shape.IsValid()) return with_context(TooLarge(num_ranks));
  node->attributes.Set("shape", value->type.shape);
  return Status::Ok();
}

Status PlaceOutputs(ir::Graph& graph, ir::Node* node) {
  for (ir::Value* output : node->outputs) output->sbp.clear();
  for (int axis = 0; axis < graph.mesh().num_axes(); ++axis) {
    const std::vector<Sbp> outputs =
        ChooseSignature(*node, axis, graph.mesh().axes()[axis].size).outputs;
    for (size_t i = 0; i < outputs.size(); ++i) node->outputs[i]->sbp.push_back(outputs[i]);
  }
  const int data = graph.mesh().FindAxis("data");
  if (node->op->traits.is_random && data >= 0 && graph.mesh().axes()[data].size > 1 &&
      !node->outputs[0]->sbp[data].is_split()) {
    return InvalidArgument(
        "{}: {} of %{}, which is the same on all ranks, would draw another mask on each; apply it "
        "to values that are "
        "split over the axis data",
        node->scope, node->op->name, node->inputs[0]->name);
  }
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
    } else if (node->inputs.empty()) {
      for (ir::Value* output : node->outputs) output->sbp = AllBroadcast(graph.mesh());
    } else {
      ZG_RETURN_IF_ERROR(PlaceOutputs(graph, node));
    }
  }
  return changed;
}

}  // namespace zg
