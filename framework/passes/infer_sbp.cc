#include "framework/passes/infer_sbp.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "framework/ir/builder.h"
#include "framework/ir/parts_context.h"
#include "framework/ir/placement.h"
#include "framework/passes/dividing_sizes.h"
#include "framework/passes/fixed_parts.h"

namespace zg {
namespace {

Status TooLarge(int num_ranks) {
  return InvalidArgument(
      "the parts of {} ranks have more than 2^56 elements together; use a smaller batch",
      num_ranks);
}

// Whether an attribute of the node gives its value's placement on data ranks: an input or a cache.
bool SaysPlacement(const ir::Node& node) {
  const ir::OpKind kind = node.op->traits.kind;
  return kind == ir::OpKind::kInput ||
         (kind == ir::OpKind::kVariable && node.attributes.Has("placement"));
}

// Whether the node writes rows into a cache.
bool WritesCache(const ir::Node& node) {
  if (node.inputs.empty() || !node.op->traits.has_side_effect) return false;
  const ir::Node& storage = *node.inputs[0]->producer;
  return storage.op->traits.kind == ir::OpKind::kVariable && SaysPlacement(storage);
}

// The input becomes its logical value: the parts of all data ranks side by side.
Status PlaceInput(ir::Graph& graph, ir::Node* node) {
  ir::Value* value = node->outputs[0];
  value->sbp = AllBroadcast(graph.mesh());
  const Sbp sbp = node->attributes.Sbp("placement");
  const auto with_context = [&](const Status& status) {
    return status.WithContext(
        fmt::format("{} \"{}\" {}", node->op->name,
                    node->attributes.Has("name") ? node->attributes.String("name") : value->name,
                    value->type.ToString()));
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

// Random numbers are drawn by micro-batch and by element of the rank's part: ranks that share
// micro-batches must hold the same part.
Status CheckRandom(const ir::Graph& graph, const ir::Node& node) {
  const Mesh& mesh = graph.mesh();
  for (int axis = 0; axis < mesh.num_axes(); ++axis) {
    if (mesh.axes()[axis].num_parts() == 1 || mesh.IsDataAxis(axis)) continue;
    const Sbp sbp = node.outputs[0]->sbp[axis];
    if (!sbp.is_broadcast() && !KnowsItsPart(node)) {
      return InvalidArgument(
                 "{} of %{}, which is {} along the axis {}, would draw the same numbers for different "
                 "parts; apply it to values that are B along that axis",
                 node.op->name, node.inputs[0]->name, sbp.ToString(), mesh.axes()[axis].name)
          .WithContext(node.scope);
    }
  }
  return Status::Ok();
}

// "S(2), B": the placements of the node's inputs.
std::string Placements(const ir::Node& node, int axis) {
  std::vector<std::string> placements;
  for (const ir::Value* input : node.inputs) placements.push_back(input->sbp[axis].ToString());
  return fmt::format("{}", fmt::join(placements, ", "));
}

// The dim along which the micro-batches of a value are side by side; -1: none.
int MicroBatchDim(const Mesh& mesh, const ir::Value& value) {
  for (const int axis : mesh.DataAxes()) {
    if (value.sbp[axis].is_split()) return value.sbp[axis].dim();
  }
  return -1;
}

// Whether the node can compute all micro-batches at once, as the ranks hold them: without
// communication between data ranks, and such that each part of a result is that of its micro-batch,
// whose type the outputs still have.
bool JoinsMicroBatches(const ir::Graph& graph, const ir::Node& node) {
  const Mesh& mesh = graph.mesh();
  const StatusOr<std::vector<TensorType>> joined = node.op->infer_shape(node.Call());
  if (!joined.ok()) return false;
  std::vector<NdSbp> placements(node.outputs.size(), AllBroadcast(mesh));
  for (const int axis : mesh.DataAxes()) {
    const ir::SbpSignature signature = ir::ChooseSignature(node, axis, mesh);
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i]->sbp[axis] != signature.inputs[i]) return false;
    }
    for (size_t i = 0; i < placements.size(); ++i) placements[i][axis] = signature.outputs[i];
  }
  for (size_t i = 0; i < placements.size(); ++i) {
    const TensorType& own = node.outputs[i]->type;
    if ((*joined)[i].dtype != own.dtype) return false;
    if (LocalShape((*joined)[i].shape, placements[i], mesh) != own.shape) return false;
  }
  return true;
}

// Otherwise each micro-batch is computed on its own: the node reads its inputs' parts.
Status ComputeByMicroBatch(ir::Graph& graph, ir::Node* node) {
  ir::Builder builder(&graph, node->section);
  builder.InsertBefore(node);
  builder.set_scope(node->scope);
  const int64_t num_parts = graph.mesh().num_data_ranks();
  for (size_t i = 0; i < node->inputs.size(); ++i) {
    ir::Value* input = node->inputs[i];
    const int64_t dim = MicroBatchDim(graph.mesh(), *input);
    if (dim < 0) continue;
    ir::Value* own = builder.Op("own_part", {input}, {{"dim", dim}, {"num_parts", num_parts}},
                                input->name + ".own");
    ZG_RETURN_IF_ERROR(builder.status());
    for (const int axis : graph.mesh().DataAxes()) own->sbp[axis] = Sbp::P();
    graph.ReplaceInput(node, static_cast<int>(i), own);
  }
  return Status::Ok();
}

// Lets the node read its input in this placement.
Status PlaceInputOf(ir::Graph& graph, ir::Node* node, int input, const NdSbp& wanted,
                    const char* suffix) {
  ir::Value* const value = node->inputs[input];
  if (value->sbp == wanted) return Status::Ok();
  ir::Builder builder(&graph, node->section);
  builder.InsertBefore(node);
  builder.set_scope(node->scope);
  ir::Value* const placed = builder.Place(value, wanted, value->name + suffix);
  ZG_RETURN_IF_ERROR(builder.status());
  graph.ReplaceInput(node, input, placed);
  return Status::Ok();
}

// If each micro-batch has its own result, the results of all of them are returned, side by side along
// dim 0, as those of several micro-batches of a rank are.
Status JoinResult(ir::Graph& graph, ir::Node* output) {
  const ir::Value* result = output->inputs[0];
  const std::vector<int> axes = graph.mesh().DataAxes();
  const bool for_every_micro_batch = output->section->kind == ir::SectionKind::kEval ||
                                     output->section->kind == ir::SectionKind::kForward;
  if (!for_every_micro_batch || axes.empty()) return Status::Ok();
  const int64_t dim = MicroBatchDim(graph.mesh(), *result);
  if (!result->sbp[axes[0]].is_partial() && dim <= 0) return Status::Ok();
  if (result->type == TensorType{DType::kF32, Shape{}}) return Status::Ok();  // the mean is
  if (result->type.shape.num_dims() == 0) {
    return InvalidArgument(
               "result '{}': got {} of each micro-batch, expected f32[], whose mean is taken, or a "
               "tensor, whose parts are put side by side along dim 0; reshape it to [1]",
               output->attributes.String("name"), result->type.ToString())
        .WithContext(output->scope);
  }
  ir::Builder builder(&graph, output->section);
  builder.InsertBefore(output);
  if (dim > 0) ZG_RETURN_IF_ERROR(ComputeByMicroBatch(graph, output));
  NdSbp whole = output->inputs[0]->sbp;  // along axes whose ranks share micro-batches
  for (int axis = 0; axis < graph.mesh().num_axes(); ++axis) {
    if (!graph.mesh().IsDataAxis(axis)) whole[axis] = Sbp::B();
  }
  ZG_RETURN_IF_ERROR(PlaceInputOf(graph, output, 0, whole, ".whole"));
  ir::Value* joined =
      builder.Op("joined_parts", {output->inputs[0]},
                 {{"dim", int64_t{0}}, {"num_parts", int64_t{graph.mesh().num_data_ranks()}}},
                 result->name + ".joined");
  ZG_RETURN_IF_ERROR(builder.status());
  for (const int axis : axes) joined->sbp[axis] = Sbp::S(0);
  graph.ReplaceInput(output, 0, joined);
  return Status::Ok();
}

// As its attribute says, along the axes along which its rules split it.
void PlaceVariable(ir::Graph& graph, ir::Node* variable) {
  variable->outputs[0]->sbp = AllBroadcast(graph.mesh());
  const NdSbp& split = variable->attributes.NdSbp("split");
  for (size_t axis = 0; axis < split.size(); ++axis) variable->outputs[0]->sbp[axis] = split[axis];
}

// A split parameter stays split: its readers must be able to compute with its parts.
Status CheckParametersStay(const ir::Graph& graph, const ir::Node& node) {
  const Mesh& mesh = graph.mesh();
  for (int axis = 0; axis < mesh.num_axes(); ++axis) {
    if (mesh.axes()[axis].num_parts() == 1 || mesh.IsDataAxis(axis)) continue;
    const ir::SbpSignature signature = ir::ChooseSignature(node, axis, mesh);
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const ir::Value& input = *node.inputs[i];
      if (!input.sbp[axis].is_split() || input.sbp[axis] == signature.inputs[i]) continue;
      if (!ir::HoldsParameter(input) || node.op->traits.kind == ir::OpKind::kOutput) continue;
      return InvalidArgument(
                 "{} cannot compute with the parameter %{} {} split {} along {}, beside inputs {}; "
                 "place the parameter otherwise, or B",
                 node.op->name, input.name, input.type.ToString(), input.sbp[axis].ToString(),
                 mesh.axes()[axis].name, Placements(node, axis))
          .WithContext(node.scope);
    }
  }
  return Status::Ok();
}

// Whether the node can compute with such a part of this input.
bool ReadsParts(const ir::Node& node, const ir::Value& input, Sbp split, int axis, int num_parts) {
  for (const ir::SbpSignature& signature : ir::SignaturesOf(node, axis)) {
    bool fits = signature.units % num_parts == 0;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      fits = fits && (node.inputs[i] != &input || signature.inputs[i] == split);
    }
    if (fits) return true;
  }
  return false;
}

// Along axes whose ranks share micro-batches a cache is placed like the first rows that are
// written, if they are read that way: each rank keeps keys and values of its heads. Once it is
// whole, other rows are whole as well.
Status PlaceCache(ir::Graph& graph, ir::Node* write) {
  ir::Value* const cache = write->inputs[0];
  const ir::Value& rows = *write->inputs[1];
  const Mesh& mesh = graph.mesh();
  const Sbp by_channels = Sbp::S(2);
  const bool is_first = std::all_of(
      cache->users.begin(), cache->users.end(),
      [&](const ir::Node* user) { return user == write || user->outputs[0]->sbp.empty(); });
  NdSbp wanted = rows.sbp;
  for (int axis = 0; axis < mesh.num_axes(); ++axis) {
    if (mesh.IsDataAxis(axis) || rows.sbp[axis] != by_channels) continue;
    const std::vector<ir::Node*>& readers = write->outputs[0]->users;
    const bool is_read_so =
        std::all_of(readers.begin(), readers.end(), [&](const ir::Node* reader) {
          return ReadsParts(*reader, *write->outputs[0], by_channels, axis,
                            mesh.axes()[axis].num_parts());
        });
    if (is_first && is_read_so) cache->sbp[axis] = by_channels;
    wanted[axis] = cache->sbp[axis];
  }
  return PlaceInputOf(graph, write, 1, wanted, ".whole");
}

// A sum of the values of micro-batches is placed as its accumulator along axes whose ranks share them.
Status PlaceTerm(ir::Graph& graph, ir::Node* accumulate) {
  NdSbp wanted = accumulate->inputs[1]->sbp;
  for (int axis = 0; axis < graph.mesh().num_axes(); ++axis) {
    const bool is_split = !graph.mesh().IsDataAxis(axis) && wanted[axis].is_split();
    if (is_split) wanted[axis] = accumulate->inputs[0]->sbp[axis];
  }
  return PlaceInputOf(graph, accumulate, 1, wanted, ".placed");
}

// A request for one axis leaves the other axes unchanged, and has no effect on a mesh without it.
Status FillInPlacement(const Mesh& mesh, ir::Node* place) {
  const std::string name = place->attributes.String("axis");
  if (name.empty()) return Status::Ok();
  const ir::Value& value = *place->inputs[0];
  const Sbp wanted = place->attributes.NdSbp("sbp")[0];
  NdSbp sbp = value.sbp;
  const int axis = mesh.FindAxis(name);
  if (axis >= 0 && mesh.IsDataAxis(axis)) {
    return InvalidArgument(
               "place %{}: ranks along {} compute different micro-batches; expected another axis, such "
               "as tensor",
               value.name, name)
        .WithContext(place->scope);
  }
  if (axis >= 0 && mesh.axes()[axis].num_parts() > 1) {
    const int num_parts = mesh.axes()[axis].num_parts();
    if (wanted.is_split() && value.type.shape.dim(wanted.dim()) % num_parts != 0) {
      return InvalidArgument(
                 "place %{} {}: its dim {} of {} does not divide into {} parts along {}: {}",
                 value.name, value.type.ToString(), wanted.dim(),
                 value.type.shape.dim(wanted.dim()), num_parts, name,
                 NearestThatDivide(value.type.shape.dim(wanted.dim()), 1, num_parts))
          .WithContext(place->scope);
    }
    sbp[axis] = wanted;
  }
  place->attributes.Set("sbp", std::move(sbp));
  place->attributes.Set("axis", std::string());
  return Status::Ok();
}

Status PlaceNode(ir::Graph& graph, ir::Node* node);

// Restores the types that the outputs have in one micro-batch.
Status TakeMicroBatchTypes(const Mesh& mesh, ir::Node* node) {
  ir::OpCall call = node->Call();
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    NdSbp sbp = node->inputs[i]->sbp;
    for (size_t axis = 0; axis < sbp.size(); ++axis) {
      if (!mesh.IsDataAxis(static_cast<int>(axis))) sbp[axis] = Sbp::B();
    }
    call.inputs[i].shape = LocalShape(call.inputs[i].shape, sbp, mesh);
  }
  ZG_ASSIGN_OR_RETURN(const std::vector<TensorType> types, node->op->infer_shape(call));
  for (size_t i = 0; i < types.size(); ++i) node->outputs[i]->type = types[i];
  return Status::Ok();
}

// Lets the op's rule for parts replace the node; true if it did.
StatusOr<bool> ComputeInParts(ir::Graph& graph, ir::Node* node, int axis) {
  ir::Builder builder(&graph, node->section);
  builder.InsertBefore(node);
  builder.set_scope(node->scope);
  std::vector<Sbp> wanted;
  for (const ir::Value* output : node->outputs) wanted.push_back(ir::WantedByParameter(*output));
  const int begin = graph.IndexOf(node);
  ir::PartsContext context(*node, axis, &builder, std::move(wanted));
  ZG_RETURN_IF_ERROR(node->op->in_parts(context));
  ZG_RETURN_IF_ERROR(builder.status());
  if (context.outputs()[0] == nullptr) return false;
  const std::vector<ir::Node*>& nodes = node->section->nodes;
  const std::vector<ir::Node*> added(nodes.begin() + begin, nodes.begin() + graph.IndexOf(node));
  for (size_t i = 0; i < node->outputs.size(); ++i) {
    graph.ReplaceAllUses(node->outputs[i], context.outputs()[i]);
  }
  std::vector<std::string> names;
  for (const ir::Value* output : node->outputs) names.push_back(output->name);
  graph.Erase(node);
  for (size_t i = 0; i < names.size(); ++i) graph.Rename(context.outputs()[i], names[i]);
  for (ir::Node* part : added) {
    ZG_RETURN_IF_ERROR(TakeMicroBatchTypes(graph.mesh(), part));
    ZG_RETURN_IF_ERROR(PlaceNode(graph, part));
  }
  return true;
}

Status PlaceNode(ir::Graph& graph, ir::Node* node) {
  const std::vector<int> data_axes = graph.mesh().DataAxes();
  if (node->op->traits.kind == ir::OpKind::kPlace) {
    ZG_RETURN_IF_ERROR(FillInPlacement(graph.mesh(), node));
  }
  // A sum over micro-batches has the shape of one of them.
  const bool by_micro_batch =
      !data_axes.empty() &&
      (node->op->traits.kind == ir::OpKind::kAccumulate ||
       ir::MicroBatchSignature(*node, data_axes[0], graph.mesh()).has_value());
  if (by_micro_batch && !JoinsMicroBatches(graph, *node)) {
    ZG_RETURN_IF_ERROR(ComputeByMicroBatch(graph, node));
  }
  for (int axis = 0; axis < graph.mesh().num_axes() && node->op->in_parts != nullptr; ++axis) {
    if (graph.mesh().IsDataAxis(axis) || graph.mesh().axes()[axis].num_parts() == 1) continue;
    ZG_ASSIGN_OR_RETURN(const bool is_replaced, ComputeInParts(graph, node, axis));
    if (is_replaced) return Status::Ok();
  }
  if (node->op->traits.kind == ir::OpKind::kOutput) ZG_RETURN_IF_ERROR(JoinResult(graph, node));
  if (WritesCache(*node)) ZG_RETURN_IF_ERROR(PlaceCache(graph, node));
  if (node->op->traits.kind == ir::OpKind::kAccumulate) ZG_RETURN_IF_ERROR(PlaceTerm(graph, node));
  ZG_RETURN_IF_ERROR(SumBeforeUse(graph, node));
  ir::PlaceOutputs(node, graph.mesh());
  ZG_RETURN_IF_ERROR(CheckParametersStay(graph, *node));
  ZG_RETURN_IF_ERROR(SumInParts(graph, node));
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
    if (SaysPlacement(*node)) {
      ZG_RETURN_IF_ERROR(PlaceInput(graph, node));
    } else if (node->op->traits.kind == ir::OpKind::kVariable) {
      PlaceVariable(graph, node);
    } else {
      ZG_RETURN_IF_ERROR(PlaceNode(graph, node));
    }
  }
  return changed;
}

}  // namespace zg
