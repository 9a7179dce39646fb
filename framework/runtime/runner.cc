#include "framework/runtime/runner.h"

#include "framework/passes/overlap_communication.h"
#include "framework/runtime/device_runner.h"
#include "framework/runtime/host_runner.h"

namespace zg {

StatusOr<std::unique_ptr<Runner>> MakeRunner(const ir::Graph& graph, Communicator* communicator,
                                             const RunnerOptions& options) {
  const bool is_host = communicator->device().is_host();
  if (Overlaps(graph) &&
      !(is_host ? communicator->can_have_threads() : communicator->queues_on_device())) {
    return InvalidArgument(
        "graph {}: its collectives cannot run beside the computation (`overlap`): the transport {} {}; "
        "leave the overlap out",
        graph.name(), communicator->transport(),
        is_host ? "is for one thread alone" : "waits for the device");
  }
  for (const MeshAxis& axis : graph.mesh().axes()) {
    if (is_host || !axis.has_fixed_parts()) continue;
    return InvalidArgument(
        "graph {}: mesh: {}: only the CPU's kernels compute several parts as several ranks would; use "
        "{}={}, or the CPU",
        graph.name(), axis.ToString(), axis.name, axis.size);
  }
  Status possible;
  std::unique_ptr<Runner> runner;
  if (is_host) {
    possible = HostRunner::Check(options);
    runner = std::make_unique<HostRunner>(communicator, options);
  } else {
    possible = DeviceRunner::Check(*communicator, options);
    runner = std::make_unique<DeviceRunner>(communicator, options);
  }
  if (!possible.ok()) return possible.WithContext(fmt::format("graph {}", graph.name()));
  return runner;
}

}  // namespace zg
