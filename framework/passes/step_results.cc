#include "framework/passes/step_results.h"

#include "framework/passes/micro_batch_values.h"

namespace zg {

StepResult StepResultOf(const ir::Graph& graph, const ir::Node& output) {
  StepResult result;
  result.type = graph.LocalType(*output.inputs[0]);
  result.is_of_micro_batch = output.section->kind == ir::SectionKind::kForward &&
                             MicroBatchValues(*output.section).count(output.inputs[0]) != 0;
  if (result.is_of_micro_batch) {
    result.num_parts = graph.micro_batches() / graph.mesh().num_data_ranks();
  }
  return result;
}

int64_t StepResultBytes(const ir::Graph& graph) {
  int64_t bytes = 0;
  for (const ir::Node* output : graph.NodesOf(ir::OpKind::kOutput)) {
    if (output->section->kind != ir::SectionKind::kEval)
      bytes += StepResultOf(graph, *output).bytes();
  }
  return bytes;
}

}  // namespace zg
