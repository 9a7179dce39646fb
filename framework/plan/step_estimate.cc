#include "framework/plan/step_estimate.h"

#include "framework/passes/predict_traffic.h"

namespace zg::plan {

StepEstimate EstimateStep(const ir::Graph& graph, const Machine& machine) {
  StepEstimate estimate;
  estimate.traffic_of_axes = TrafficOfAxes(graph, machine);
  TimeEstimate& time = estimate.time;
  time =
      EstimateTime(estimate.traffic_of_axes, {PredictFlops(graph), PredictKernels(graph)}, machine);
  if (machine.prices != nullptr) {
    estimate.priced = PriceComputation(graph, machine);
    time.compute_ms = estimate.priced->compute_ms;
    time.start_ms = estimate.priced->between_ms;
  }
  if (HasTransferPrices(graph.mesh(), machine)) {
    estimate.priced_transfers = PriceTransfers(graph, machine);
    time.latency_ms = time.transfer_ms = time.host_transfer_ms = 0;
    time.priced_transfer_ms = estimate.priced_transfers->ms;
  }
  estimate.queues = LayOnTwoQueues(graph, machine);
  time.slowed_ms = estimate.queues.slowed_ms;
  for (const auto& section : graph.sections()) {
    for (const ir::Node* node : section->nodes) {
      const auto found = estimate.queues.transfers.find(node);
      if (found != estimate.queues.transfers.end()) time.hidden_ms += found->second.hidden_ms();
    }
  }
  return estimate;
}

}  // namespace zg::plan
