#include "framework/passes/accumulate_results.h"

#include <map>
#include <vector>

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

// Several next values of a buffer become their mean.
Status MergeNextValues(ir::Graph& graph, ir::Section* forward) {
  std::vector<ir::Value*> buffers;
  std::map<const ir::Value*, std::vector<ir::Node*>> nodes;
  for (ir::Node* node : forward->nodes) {
    if (node->op->traits.kind != ir::OpKind::kNextValue) continue;
    if (nodes[node->inputs[0]].empty()) buffers.push_back(node->inputs[0]);
    nodes[node->inputs[0]].push_back(node);
  }
  for (ir::Value* buffer : buffers) {
    const std::vector<ir::Node*>& of_buffer = nodes[buffer];
    if (of_buffer.size() == 1) continue;
    ir::Builder builder(&graph, forward);
    builder.set_scope(of_buffer.front()->scope);
    ir::Value* sum = of_buffer.front()->inputs[1];
    for (size_t i = 1; i < of_buffer.size(); ++i) {
      sum = builder.Op("add", {sum, of_buffer[i]->inputs[1]});
    }
    const double factor = 1.0 / static_cast<double>(of_buffer.size());
    builder.Ops("next_value", {buffer, builder.Op("scale", {sum}, {{"factor", factor}})});
    ZG_RETURN_IF_ERROR(builder.status());
    for (ir::Node* node : of_buffer) graph.Erase(node);
  }
  return Status::Ok();
}

}  // namespace

StatusOr<bool> AccumulateResults::Run(ir::Graph& graph) const {
  ZG_RETURN_IF_ERROR(MergeNextValues(graph, graph.section(ir::SectionKind::kForward)));
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
