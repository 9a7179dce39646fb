#include "framework/passes/predict_traffic.h"

#include "framework/ops/op_names.h"

namespace zg {
namespace {

// How often a node of the section runs in one step; 0: not part of training.
int64_t RunsPerStep(const ir::Graph& graph, const ir::Section& section) {
  switch (section.kind) {
    case ir::SectionKind::kForward:
    case ir::SectionKind::kBackward:
      return graph.micro_batches() / graph.mesh().num_data_ranks();
    case ir::SectionKind::kUpdate:
      return 1;
    case ir::SectionKind::kVariables:
    case ir::SectionKind::kEval:
      return 0;
  }
  return 0;
}

// The node as one rank and the others along the node's axes see it: the values are whole along
// these, and local along the others.
ir::OpCall CallAlongAxes(const ir::Graph& graph, const ir::Node& node) {
  ir::OpCall call = node.Call();
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    NdSbp sbp = node.inputs[i]->sbp;
    for (const int axis : ir::BoxingAxes(node)) sbp[axis] = Sbp::B();
    call.inputs[i].shape = LocalShape(node.inputs[i]->type.shape, sbp, graph.mesh());
  }
  return call;
}

bool SplitsASum(const ir::Node& node) {
  for (const int axis : ir::BoxingAxes(node)) {
    if (node.inputs[0]->sbp[axis].is_partial() && node.outputs[0]->sbp[axis].is_split())
      return true;
  }
  return false;
}

// The number of ranks along those of the node's axes for which `is_counted` holds.
template <typename IsCounted>
int NumRanksAlong(const ir::Graph& graph, const ir::Node& node, const IsCounted& is_counted) {
  int product = 1;
  for (const int axis : ir::BoxingAxes(node)) {
    if (is_counted(node.outputs[0]->sbp[axis])) product *= graph.mesh().axes()[axis].size;
  }
  return product;
}

// One execution of a node.
struct NodeTraffic {
  PredictedTraffic own;
  PredictedTraffic collected;  // by an all-gather behind it
};

NodeTraffic TrafficOf(const ir::Graph& graph, const ir::Node& node) {
  NodeTraffic traffic;
  if (node.op->sent_bytes == nullptr) return traffic;
  const int num_ranks = NumRanksAlong(graph, node, [](Sbp) { return true; });
  const int num_copies = NumRanksAlong(graph, node, [](Sbp to) { return !to.is_split(); });
  traffic.own = {1, node.op->traits.message_rounds * (num_ranks - 1),
                 node.op->sent_bytes(CallAlongAxes(graph, node), num_ranks)};
  // A sum that is split along some axes and copied along others: the copies are collected.
  if (!SplitsASum(node) || num_copies == 1) return traffic;
  traffic.collected = {1, num_copies - 1,
                       graph.LocalType(*node.outputs[0]).bytes() / num_copies * (num_copies - 1)};
  return traffic;
}

void Add(const PredictedTraffic& traffic, int64_t runs, PredictedTraffic* sum) {
  sum->count += runs * traffic.count;
  sum->messages += runs * traffic.messages;
  sum->bytes += runs * traffic.bytes;
}

}  // namespace

int64_t SentBytes(const ir::Graph& graph, const ir::Node& node) {
  const NodeTraffic traffic = TrafficOf(graph, node);
  return traffic.own.bytes + traffic.collected.bytes;
}

std::map<std::string, PredictedTraffic> PredictTraffic(const ir::Graph& graph) {
  std::map<std::string, PredictedTraffic> traffic;
  for (const auto& section : graph.sections()) {
    const int64_t runs = RunsPerStep(graph, *section);
    if (runs == 0) continue;
    for (const ir::Node* node : section->nodes) {
      const NodeTraffic of_node = TrafficOf(graph, *node);
      if (of_node.own.count > 0) Add(of_node.own, runs, &traffic[node->op->name]);
      if (of_node.collected.count > 0) {
        Add(of_node.collected, runs, &traffic[op_names::kAllGather]);
      }
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
