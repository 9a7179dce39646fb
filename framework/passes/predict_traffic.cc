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

// Bytes that reach rank 0 in one collective of `num_ranks` ranks on a value of `elements` elements,
// of which its part is a largest one. 0: nothing crosses between ranks.
int64_t BytesReceived(const ir::Node& node, int64_t elements, int num_ranks) {
  const std::string& op = node.op->name;
  const int64_t part = (elements + num_ranks - 1) / num_ranks;
  const int64_t term_bytes = SizeOf(node.inputs[0]->type.dtype);
  const int64_t value_bytes = SizeOf(node.outputs[0]->type.dtype);
  if (op == "all_to_all") return part / num_ranks * (num_ranks - 1) * value_bytes;
  const int64_t terms = part * (num_ranks - 1) * term_bytes;
  if (op == "reduce_scatter") return terms;
  const int64_t others = (elements - part) * value_bytes;
  return op == "all_reduce" ? terms + others : others;
}

}  // namespace

std::map<std::string, PredictedTraffic> PredictTraffic(const ir::Graph& graph) {
  std::map<std::string, PredictedTraffic> traffic;
  for (const auto& section : graph.sections()) {
    const int64_t runs = RunsPerStep(graph, *section);
    if (runs == 0) continue;
    for (const ir::Node* node : section->nodes) {
      const std::string& op = node->op->name;
      if (op != "all_reduce" && op != "reduce_scatter" && op != "all_gather" &&
          op != "all_to_all") {
        continue;
      }
      const int num_ranks = graph.mesh().axes()[node->attributes.Int("axis")].size;
      traffic[op].count += runs;
      traffic[op].bytes +=
          runs * BytesReceived(*node, node->outputs[0]->type.shape.num_elements(), num_ranks);
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
