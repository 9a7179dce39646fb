#include "framework/passes/predict_traffic.h"

namespace zg {
namespace {

// How often a node of the section runs in one step; 0: not part of training.
int64_t RunsPerStep(const Graph& graph, const Section& section) {
  switch (section.kind) {
    case SectionKind::kForward:
    case SectionKind::kBackward:
      return graph.micro_batches() / graph.mesh().num_ranks();
    case SectionKind::kUpdate:
      return 1;
    case SectionKind::kVariables:
    case SectionKind::kEval:
      return 0;
  }
  return 0;
}

// Parts of the value that one rank sends to the others, each T/n.
int64_t PartsSent(const std::string& op, int64_t num_ranks) {
  if (op == "all_reduce") return 2 * (num_ranks - 1);
  if (op == "reduce_scatter" || op == "all_gather") return num_ranks - 1;
  return 0;
}

}  // namespace

std::map<std::string, PredictedTraffic> PredictTraffic(const Graph& graph) {
  std::map<std::string, PredictedTraffic> traffic;
  for (const auto& section : graph.sections()) {
    const int64_t runs = RunsPerStep(graph, *section);
    if (runs == 0) continue;
    for (const Node* node : section->nodes) {
      const std::string& op = node->op->name;
      const bool all_to_all = op == "all_to_all";
      if (!all_to_all && PartsSent(op, 2) == 0) continue;
      const TensorType& type = node->outputs[0]->type;
      const int64_t num_ranks = graph.mesh().axes()[node->attributes.Int("axis")].size;
      const int64_t part = (type.shape.num_elements() + num_ranks - 1) / num_ranks;
      const int64_t sent =
          all_to_all ? part / num_ranks * (num_ranks - 1) : part * PartsSent(op, num_ranks);
      traffic[op].count += runs;
      traffic[op].bytes += runs * sent * SizeOf(type.dtype);
    }
  }
  return traffic;
}

double PredictFlops(const Graph& graph) {
  double flops = 0;
  for (const auto& section : graph.sections()) {
    const int64_t runs = RunsPerStep(graph, *section);
    if (runs == 0) continue;
    for (const Node* node : section->nodes) {
      if (node->op->flops == nullptr) continue;
      flops += static_cast<double>(runs) *
               static_cast<double>(node->op->flops(node->LocalCall(graph.mesh())));
    }
  }
  return flops;
}

}  // namespace zg
