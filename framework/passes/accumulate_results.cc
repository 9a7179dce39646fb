#include "framework/passes/accumulate_results.h"

#include "framework/ir/builder.h"
#include "framework/passes/micro_batch_values.h"
#include "framework/passes/step_mean.h"

namespace zg {
namespace {

Status AverageResult(ir::Graph& graph, ir::Node* output) {
  const std::string name = output->attributes.String("name");
  ZG_ASSIGN_OR_RETURN(ir::Value * mean, AppendStepMean(graph, output->inputs[0],
                                                       {name + ".sum", name + ".mean"}, output));
  graph.Erase(output);
  ir::Builder update(&graph, graph.section(ir::SectionKind::kUpdate));
  update.Ops("output", {mean}, {{"name", name}});
  return update.status();
}

// The mean over the step of the micro-batches' values.
StatusOr<ir::Value*> MeanNext(ir::Graph& graph, ir::Node* node, bool keep_finite) {
  ir::Value* buffer = node->inputs[0];
  ZG_ASSIGN_OR_RETURN(ir::Value * mean,
                      AppendStepMean(graph, node->inputs[1],
                                     {buffer->name + ".sum", buffer->name + ".next"}, node));
  if (!keep_finite) return mean;
  ir::Builder update(&graph, graph.section(ir::SectionKind::kUpdate));
  update.set_scope(node->scope);
  mean = update.Op("finite_or", {mean, buffer}, {}, buffer->name + ".finite");
  ZG_RETURN_IF_ERROR(update.status());
  return mean;
}

Status AssignBuffer(ir::Graph& graph, ir::Node* node, bool differs, bool keep_finite) {
  ir::Value* next = node->inputs[1];
  if (differs) {
    ZG_ASSIGN_OR_RETURN(next, MeanNext(graph, node, keep_finite));
  }
  ir::Builder update(&graph, graph.section(ir::SectionKind::kUpdate));
  update.set_scope(node->scope);
  update.Ops("assign", {node->inputs[0], next});
  graph.Erase(node);
  return update.status();
}

}  // namespace

StatusOr<bool> AccumulateResults::Run(ir::Graph& graph) const {
  const ir::Section& forward = *graph.section(ir::SectionKind::kForward);
  const auto by_micro_batch = MicroBatchValues(forward);
  bool changed = false;
  for (ir::Node* node : std::vector<ir::Node*>(forward.nodes)) {
    const ir::OpKind kind = node->op->traits.kind;
    if (kind == ir::OpKind::kNextValue) {
      const bool differs = by_micro_batch.count(node->inputs[1]) != 0;
      ZG_RETURN_IF_ERROR(AssignBuffer(graph, node, differs, keep_finite_));
      changed = true;
    } else if (kind == ir::OpKind::kOutput && by_micro_batch.count(node->inputs[0]) != 0 &&
               node->inputs[0]->type == TensorType{DType::kF32, Shape{}}) {
      ZG_RETURN_IF_ERROR(AverageResult(graph, node));
      changed = true;
    }
  }
  return changed;
}

}  // namespace zg
