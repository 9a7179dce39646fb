// Runner: executes the instructions of a bound program on the arena's device. On the host an
// instruction is done when it returns (host_runner.cc); on a device a whole step is queued before
// the host waits for it (device_runner.cc).
#pragma once

#include <memory>

#include "framework/base/status.h"
#include "framework/comm/communicator.h"
#include "framework/kernels/kernel.h"
#include "framework/runtime/bound_program.h"
#include "framework/runtime/gradient_histograms.h"
#include "framework/runtime/memory_meter.h"
#include "framework/runtime/profile.h"

namespace zg {

struct RunnerOptions {
  bool detect_anomaly = false;  // checks the result of every node (anomaly.h); for the host only
  bool record = false;          // records a device's work for a list, and replays it
  int threads = 1;              // that kernels may use; for the host only
  // For the host only; null: no measurement.
  Profiler* profiler = nullptr;
  GradientHistograms* gradient_histograms = nullptr;
};

class Runner {
 public:
  virtual ~Runner() = default;

  // Call before the first run: takes the program to run, and allocates the memory that it needs
  // besides the arena. Both must outlive it; with a null `meter` operands are not measured. Every
  // rank of the job must call this.
  virtual Status Prepare(BoundProgram* program, MemoryMeter* meter) = 0;

  // Runs a list of the program with the inputs that its slots point to. The inputs may change once
  // the call has returned.
  virtual Status Run(InstructionList& list, const StepContext& context) = 0;

  // Kernels of the program have changed: the next run records them again.
  virtual void ForgetRecordings() {}

  // Waits until everything that was run is done. Then the outputs of training are in their slots.
  virtual Status Finish(const StepContext& context) = 0;

  // Whether work of the last step continues while the host prepares the next one, which waits for
  // it.
  virtual bool leaves_work() const { return false; }
  // Waits for that work. Error: that of the work, such as a transfer.
  virtual Status Settle() { return Status::Ok(); }
};

// The runner for the device of the communicator, which must outlive it. Errors: options that this
// device does not support.
StatusOr<std::unique_ptr<Runner>> MakeRunner(const ir::Graph& graph, Communicator* communicator,
                                             const RunnerOptions& options);

}  // namespace zg
