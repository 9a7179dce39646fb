#include "framework/plan/step_estimate.h"

#include "framework/passes/predict_traffic.h"

namespace zg::plan {

StepEstimate EstimateStep(const Program& program, const Machine& machine) {
  const ir::Graph& graph = program.graph;
  StepEstimate estimate;
  estimate.traffic_of_axes = TrafficOfAxes(graph, machine);
  estimate.kernels = PredictKernels(graph);
  TimeEstimate& time = estimate.time;
  time = EstimateTime(estimate.traffic_of_axes, {program.flops, estimate.kernels}, machine);
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
  time.hidden_ms = estimate.queues.hidden_ms;
  time.slowed_ms = estimate.queues.slowed_ms;
  return estimate;
}

}  // namespace zg::plan
