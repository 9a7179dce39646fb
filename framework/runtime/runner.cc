#include "framework/runtime/runner.h"

#include "framework/runtime/device_runner.h"
#include "framework/runtime/host_runner.h"

namespace zg {

StatusOr<std::unique_ptr<Runner>> MakeRunner(const ir::Graph& graph, Communicator* communicator,
                                             const RunnerOptions& options) {
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
