#include "zero/eval_weights.h"

#include "framework/ir/builder.h"
#include "zero/update_nodes.h"

namespace zg::zero {
namespace {

// Empty for updates that have none.
std::string EvalProgramOf(const ir::Node& update) {
  constexpr char kName[] = "eval_program";
  return update.attributes.Has(kName) ? update.attributes.String(kName) : std::string();
}

// The views through which the section reads the bucket.
std::vector<ir::Node*> ViewsIn(const ir::Graph& graph, const ir::Section& section,
                               const ir::Value& bucket) {
  std::vector<ir::Node*> views;
  for (ir::Node* user : UsersIn(graph, section, bucket)) {
    if (user->op->traits.kind == ir::OpKind::kView) views.push_back(user);
  }
  return views;
}

}  // namespace

StatusOr<bool> EvalWeights::Run(ir::Graph& graph) const {
  bool changed = false;
  for (const ir::Node* update : UpdateNodes(graph)) {
    const std::string program = EvalProgramOf(*update);
    if (program.empty()) continue;
    const ir::Value* const read = ParameterAssign(*update)->inputs[0];  // possibly a 16-bit copy
    for (const auto& section : graph.sections()) {
      if (section->kind != ir::SectionKind::kEval) continue;
      const std::vector<ir::Node*> views = ViewsIn(graph, *section, *read);
      if (views.empty()) continue;
      ir::Builder builder(&graph, section.get());
      builder.InsertBefore(views.front());
      std::vector<ir::Value*> inputs = {update->inputs[0]};
      inputs.insert(inputs.end(), update->inputs.begin() + 2, update->inputs.end());
      ir::Value* weights = builder.Op("fused_elementwise", inputs, {{"program", program}},
                                      update->inputs[0]->name + ".eval");
      if (read->type.dtype != weights->type.dtype) {
        weights =
            builder.Op("cast", {weights}, {{"dtype", read->type.dtype}}, read->name + ".eval");
      }
      ZG_RETURN_IF_ERROR(builder.status());
      for (ir::Node* view : views) graph.ReplaceInput(view, 0, weights);
      changed = true;
    }
  }
  return changed;
}

}  // namespace zg::zero
