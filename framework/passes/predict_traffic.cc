#include "framework/passes/predict_traffic.h"

namespace zg {
namespace {

// How often a node of the section runs in one step; 0: not part of training.
int64_t RunsPerStep(const ir::Graph& graph, const ir::Section& section) {
  switch (section.kind) {
    case ir::SectionKind::kForward:
    case ir::SectionKind::kBackward:
      return graph.micro_batches() / graph.mesh().num_ranks();
    case ir::SectionKind::kUpdate:
      return 1;
    case ir::SectionKind::kVariables:
    case ir::SectionKind::kEval:
      return 0;
  }
  return 0;
}

// Bytes that one rank sends for one element of a part, T/n, that goes to each of the others: terms
// on their way to a sum, and sums or other values on their way to everyone. 0: nothing is sent.
int64_t BytesPerElement(const ir::Node& node) {
  const std::string& op = node.op->name;
  const bool reduces = op == "all_reduce" || op == "reduce_scatter";
  const bool gathers = op == "all_reduce" || op == "all_gather" || op == "all_to_all";
  return (reduces ? SizeOf(node.inputs[0]->type.dtype) : 0) +
         (gathers ? SizeOf(node.outputs[0]->type.dtype) : 0);
}

}  // namespace

std::map<std::string, PredictedTraffic> PredictTraffic(const ir::Graph& graph) {
  std::map<std::string, PredictedTraffic> traffic;
  for (const auto& section : graph.sections()) {
    const int64_t runs = RunsPerStep(graph, *section);
    if (runs == 0) continue;
    for (const ir::Node* node : section->nodes) {
      const int64_t element_bytes = BytesPerElement(*node);
      if (element_bytes == 0) continue;
      const std::string& op = node->op->name;
      const int64_t num_ranks = graph.mesh().axes()[node->attributes.Int("axis")].size;
      int64_t part = (node->outputs[0]->type.shape.num_elements() + num_ranks - 1) / num_ranks;
      if (op == "all_to_all") part /= num_ranks;
      traffic[op].count += runs;
      traffic[op].bytes += runs * part * (num_ranks - 1) * element_bytes;
    }
  }
  return traffic;
}

double PredictFlops(const ir::Graph& graph) {
  double flops = 0;
  for (const auto& section : graph.sections()) {
    const int64_t runs = RunsPerStep(graph, *section);
    if (runs == 0) continue;
    for (const ir::Node* node : section->nodes) {
      if (node->op->flops == nullptr) continue;
      flops += static_cast<double>(runs) *
               static_cast<double>(node->op->flops(node->LocalCall(graph.mesh())));
    }
  }
  return flops;
}

}  // namespace zg
