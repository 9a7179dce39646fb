#include "framework/passes/fixed_parts.h"

#include <algorithm>
#include <string>

#include "framework/ir/builder.h"
#include "framework/ir/placement.h"
#include "framework/ops/summed_parts.h"

namespace zg {

bool KnowsItsPart(const ir::Node& node) {
  return node.attributes.Has("parts") && node.attributes.Int("parts") > 1;
}

Status SumBeforeUse(ir::Graph& graph, ir::Node* node) {
  const Mesh& mesh = graph.mesh();
  const ir::OpKind kind = node->op->traits.kind;
  if (kind == ir::OpKind::kPlace || kind == ir::OpKind::kBoxing) return Status::Ok();
  for (int axis = 0; axis < mesh.num_axes(); ++axis) {
    if (!mesh.axes()[axis].has_fixed_parts()) continue;
    for (size_t i = 0; i < node->inputs.size(); ++i) {
      ir::Value* const input = node->inputs[i];
      if (!input->sbp[axis].is_partial()) continue;
      if (!ir::ChooseSignature(*node, axis, mesh).inputs[i].is_partial()) continue;
      ir::Builder builder(&graph, node->section);
      builder.InsertBefore(node);
      builder.set_scope(node->scope);
      NdSbp summed = input->sbp;
      summed[axis] = Sbp::B();
      ir::Value* const sum = builder.Place(input, summed, input->name + ".sum");
      ZG_RETURN_IF_ERROR(builder.status());
      graph.ReplaceInput(node, static_cast<int>(i), sum);
    }
  }
  return Status::Ok();
}

Status SumInParts(const ir::Graph& graph, ir::Node* node) {
  const Mesh& mesh = graph.mesh();
  for (int axis = 0; axis < mesh.num_axes(); ++axis) {
    const MeshAxis& along = mesh.axes()[axis];
    if (!along.has_fixed_parts() || KnowsItsPart(*node)) continue;
    const ir::SbpSignature signature = ir::ChooseSignature(*node, axis, mesh);
    const auto sums = [](Sbp sbp) { return sbp.is_partial(); };
    const auto split = std::find_if(signature.inputs.begin(), signature.inputs.end(),
                                    [](Sbp sbp) { return sbp.is_split(); });
    if (split == signature.inputs.end() ||
        std::none_of(signature.outputs.begin(), signature.outputs.end(), sums)) {
      continue;
    }
    if (!CanSumInParts(*node->op) || split != signature.inputs.begin()) {
      return InvalidArgument(
                 "{} sums over a dim that is split {} along {}, and cannot do so in parts; place its "
                 "input B along that axis, or give the axis no parts: {}={}",
                 node->op->name, split->ToString(), along.ToString(), along.name, along.size)
          .WithContext(node->scope);
    }
    if (along.num_parts() == along.size) continue;  // fewer ranks could, with the same bits
    SetSummedParts({along.num_parts() / along.size, split->dim(), split->groups()},
                   &node->attributes);
  }
  return Status::Ok();
}

}  // namespace zg
