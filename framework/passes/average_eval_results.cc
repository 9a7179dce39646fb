#include "framework/passes/average_eval_results.h"

#include "framework/ir/builder.h"
#include "framework/passes/micro_batch_values.h"

namespace zg {

StatusOr<bool> AverageEvalResults::Run(ir::Graph& graph) const {
  const int num_ranks = graph.mesh().num_data_ranks();
  if (num_ranks == 1) return false;
  const TensorType scalar = {DType::kF32, Shape{}};
  bool changed = false;
  for (const auto& section : graph.sections()) {
    if (section->kind != ir::SectionKind::kEval) continue;
    const auto by_micro_batch = MicroBatchValues(*section);
    for (ir::Node* node : std::vector<ir::Node*>(section->nodes)) {
      if (node->op->traits.kind != ir::OpKind::kOutput) continue;
      ir::Value* const result = node->inputs[0];
      if (result->type != scalar || by_micro_batch.count(result) == 0) continue;
      ir::Builder builder(&graph, section.get());
      builder.InsertBefore(node);
      ir::Value* const mean =
          builder.Op("scale", {result}, {{"factor", 1.0 / num_ranks}}, result->name + ".mean");
      ZG_RETURN_IF_ERROR(builder.status());
      graph.ReplaceInput(node, 0, mean);
      changed = true;
    }
  }
  return changed;
}

}  // namespace zg
