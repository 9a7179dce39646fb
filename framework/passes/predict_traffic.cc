#include "framework/passes/predict_traffic.h"

#include "framework/ops/op_names.h"

namespace zg {
namespace {

// The node as one rank and the others along the node's axes see it: values are whole along these
// axes, and local along the others.
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

// The part of the bytes that a node sends which every other rank gets as a result.
int64_t GatheredOf(const ir::Node& node, int64_t bytes) {
  const int axis = ir::BoxingAxes(node)[0];
  const ir::Value& input = *node.inputs[0];
  const ir::Value& output = *node.outputs[0];
  if (SplitsASum(node) || !output.sbp[axis].is_broadcast()) return 0;
  if (!input.sbp[axis].is_partial()) return bytes;
  const int64_t of_term = SizeOf(input.type.dtype);
  const int64_t of_sum = SizeOf(output.type.dtype);
  return bytes / (of_term + of_sum) * of_sum;
}

// Those of the node's axes, with more than one rank, for which `is_counted` holds.
template <typename IsCounted>
std::vector<int> AxesOf(const ir::Graph& graph, const ir::Node& node, const IsCounted& is_counted) {
  std::vector<int> axes;
  for (const int axis : ir::BoxingAxes(node)) {
    if (graph.mesh().axes()[axis].size > 1 && is_counted(node.outputs[0]->sbp[axis])) {
      axes.push_back(axis);
    }
  }
  return axes;
}

int NumRanksAlong(const ir::Graph& graph, const std::vector<int>& axes) {
  int product = 1;
  for (const int axis : axes) product *= graph.mesh().axes()[axis].size;
  return product;
}

// One execution of a node.
struct NodeTraffic {
  PredictedTraffic own;
  PredictedTraffic collected;  // by the all-gather after it
  std::vector<int> axes;
  std::vector<int> collected_axes;
};

NodeTraffic TrafficOf(const ir::Graph& graph, const ir::Node& node) {
  NodeTraffic traffic;
  if (node.op->sent_bytes == nullptr) return traffic;
  traffic.axes = AxesOf(graph, node, [](Sbp) { return true; });
  traffic.collected_axes = AxesOf(graph, node, [](Sbp to) { return !to.is_split(); });
  const int num_ranks = NumRanksAlong(graph, traffic.axes);
  const int num_copies = NumRanksAlong(graph, traffic.collected_axes);
  traffic.own = {1, node.op->traits.message_rounds * (num_ranks - 1),
                 node.op->sent_bytes(CallAlongAxes(graph, node), num_ranks)};
  traffic.own.gathered = GatheredOf(node, traffic.own.bytes);
  // A sum that is split along some axes and copied along others: the copies are gathered.
  if (!SplitsASum(node) || num_copies == 1) return traffic;
  const int64_t copied = graph.LocalType(*node.outputs[0]).bytes() / num_copies * (num_copies - 1);
  traffic.collected = {1, num_copies - 1, copied, copied};
  return traffic;
}

void Add(const PredictedTraffic& traffic, int64_t runs, PredictedTraffic* sum) {
  sum->count += runs * traffic.count;
  sum->messages += runs * traffic.messages;
  sum->bytes += runs * traffic.bytes;
  sum->gathered += runs * traffic.gathered;
}

}  // namespace

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

int64_t SentBytes(const ir::Graph& graph, const ir::Node& node) {
  const NodeTraffic traffic = TrafficOf(graph, node);
  return traffic.own.bytes + traffic.collected.bytes;
}

std::map<std::vector<int>, PredictedTraffic> PredictTrafficOf(const ir::Graph& graph,
                                                              const ir::Node& node) {
  std::map<std::vector<int>, PredictedTraffic> by_axes;
  const NodeTraffic traffic = TrafficOf(graph, node);
  if (traffic.own.count > 0) Add(traffic.own, 1, &by_axes[traffic.axes]);
  if (traffic.collected.count > 0) Add(traffic.collected, 1, &by_axes[traffic.collected_axes]);
  return by_axes;
}

std::map<std::vector<int>, std::map<std::string, PredictedTraffic>> PredictTrafficByAxes(
    const ir::Graph& graph) {
  std::map<std::vector<int>, std::map<std::string, PredictedTraffic>> traffic;
  ForEachNodeOfStep(graph, [&](const ir::Node& node, int64_t runs) {
    const NodeTraffic of_node = TrafficOf(graph, node);
    if (of_node.own.count > 0) Add(of_node.own, runs, &traffic[of_node.axes][node.op->name]);
    if (of_node.collected.count > 0) {
      Add(of_node.collected, runs, &traffic[of_node.collected_axes][op_names::kAllGather]);
    }
  });
  return traffic;
}

std::map<std::string, PredictedTraffic> PredictTraffic(const ir::Graph& graph) {
  std::map<std::string, PredictedTraffic> traffic;
  for (const auto& [axes, by_op] : PredictTrafficByAxes(graph)) {
    for (const auto& [op, of_op] : by_op) Add(of_op, 1, &traffic[op]);
  }
  return traffic;
}

int64_t PredictKernels(const ir::Graph& graph) {
  int64_t kernels = 0;
  ForEachNodeOfStep(graph, [&](const ir::Node& node, int64_t runs) {
    kernels += node.op->traits.has_kernel() ? runs : 0;
  });
  return kernels;
}

double PredictFlops(const ir::Graph& graph) {
  double flops = 0;
  ForEachNodeOfStep(graph, [&](const ir::Node& node, int64_t runs) {
    if (node.op->flops == nullptr) return;
    flops += static_cast<double>(runs) *
             static_cast<double>(node.op->flops(node.LocalCall(graph.mesh())));
  });
  return flops;
}

}  // namespace zg
