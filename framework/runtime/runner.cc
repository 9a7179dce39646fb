#include "framework/runtime/runner.h"

#include "framework/passes/overlap_communication.h"
#include "framework/runtime/device_runner.h"
#include "framework/runtime/host_runner.h"

namespace zg {

StatusOr<std::unique_ptr<Runner>> MakeRunner(const ir::Graph& graph, Communicator* communicator,
                                             const RunnerOptions& options) {
  if (Overlaps(graph) && !communicator->can_have_threads()) {
    return InvalidArgument(
        "graph {}: its collectives cannot run beside the computation (`overlap`): the transport {} is "
        "for one thread alone; leave the overlap out",
        graph.name(), communicator->transport());
  }
  Status possible;
  std::unique_ptr<Runner> runner;
  if (communicator->device().is_host()) {
    possible = HostRunner::Check(options);
    runner = std::make_unique<HostRunner>(options);
  } else {
    possible = DeviceRunner::Check(*communicator, options);
    runner = std::make_unique<DeviceRunner>(communicator, options);
  }
  if (!possible.ok()) return possible.WithContext(fmt::format("graph {}", graph.name()));
  return runner;
}

}  // namespace zg
