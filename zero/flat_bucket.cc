#include "zero/flat_bucket.h"

#include "framework/ir/builder.h"
#include "framework/passes/updated_variables.h"

namespace zg::zero {

std::vector<ir::Value*> FrozenVariables(const ir::Graph& graph) {
  std::vector<ir::Value*> frozen;
  for (const ir::Node* node : graph.section(ir::SectionKind::kVariables)->nodes) {
    ir::Value* variable = node->outputs[0];
    if (ir::HasRole(*variable, Role::kParameter) && !IsUpdated(*variable)) {
      frozen.push_back(variable);
    }
  }
  return frozen;
}

bool IsBucket(const ir::Graph& graph, const ir::Value& variable) {
  return graph.FindTensor(variable.name) == nullptr;
}

int SplitAxisOf(const ir::Value& variable) {
  const NdSbp& split = variable.producer->attributes.NdSbp("split");
  for (size_t axis = 0; axis < split.size(); ++axis) {
    if (split[axis].is_split()) return static_cast<int>(axis);
  }
  return -1;
}

int64_t NumPartsOf(const ir::Graph& graph, const ir::Value& variable) {
  const int axis = SplitAxisOf(variable);
  return axis < 0 ? 1 : graph.mesh().axes()[axis].size;
}

StatusOr<ir::Value*> MakeFlatVariable(ir::Graph& graph, const std::string& name,
                                      const std::vector<ir::Value*>& variables,
                                      const FlatLayout& layout) {
  const ir::Value& model = *variables[0];
  ir::Builder builder(&graph, graph.section(ir::SectionKind::kVariables));
  const bool is_split = layout.split_axis >= 0;
  const int64_t num_parts = is_split ? graph.mesh().axes()[layout.split_axis].size : 1;
  const Shape shape = is_split ? Shape{num_parts, layout.elements} : Shape{layout.elements};
  ir::Value* flat =
      builder.Storage(name, {model.type.dtype, shape}, ir::RoleOf(model), layout.stage);
  ZG_RETURN_IF_ERROR(builder.status());
  if (is_split) {
    NdSbp split = AllBroadcast(graph.mesh());
    split[layout.split_axis] = Sbp::S(0);
    flat->producer->attributes.Set("split", split);
  }
  for (size_t i = 0; i < variables.size(); ++i) {
    for (ir::StoredTensor& tensor : graph.tensors()) {
      if (tensor.storage != variables[i]) continue;
      tensor.storage = flat;
      tensor.offset_elements = layout.offsets[i];
    }
  }
  return flat;
}

ir::Attributes PlaceInBucket(const ir::Value& variable, int64_t offset) {
  ir::Attributes place = {{"offset", offset}, {"shape", variable.type.shape}};
  if (const int axis = SplitAxisOf(variable); axis >= 0) {
    place.Set("split", variable.producer->attributes.NdSbp("split")[axis]);
  }
  return place;
}

Status ReadThroughView(ir::Graph& graph, const std::vector<ir::Node*>& readers, ir::Value* old,
                       ir::Value* bucket, const ir::Attributes& place, const std::string& name) {
  if (readers.empty()) return Status::Ok();
  ir::Builder builder(&graph, readers[0]->section);
  builder.InsertBefore(readers[0]);
  builder.set_scope(old->producer->scope);
  ir::Value* view = builder.Op("bucket_view", {bucket}, place, name);
  ZG_RETURN_IF_ERROR(builder.status());
  for (ir::Node* reader : readers) {
    for (size_t i = 0; i < reader->inputs.size(); ++i) {
      if (reader->inputs[i] == old) graph.ReplaceInput(reader, static_cast<int>(i), view);
    }
  }
  return Status::Ok();
}

}  // namespace zg::zero
