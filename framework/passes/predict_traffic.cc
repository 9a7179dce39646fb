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

}  // namespace

std::map<std::string, PredictedTraffic> PredictTraffic(const ir::Graph& graph) {
  std::map<std::string, PredictedTraffic> traffic;
  for (const auto& section : graph.sections()) {
    const int64_t runs = RunsPerStep(graph, *section);
    if (runs == 0) continue;
    for (const ir::Node* node : section->nodes) {
      if (node->op->sent_bytes == nullptr) continue;
      const int num_ranks = graph.mesh().axes()[node->attributes.Int("axis")].size;
      PredictedTraffic& sent = traffic[node->op->name];
      sent.count += runs;
      sent.messages += runs * node->op->traits.message_rounds * (num_ranks - 1);
      sent.bytes += runs * node->op->sent_bytes(node->Call(), num_ranks);
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
