// HostRunner: runs instructions on the host, one after the other, in the calling thread.
#pragma once

#include "framework/runtime/runner.h"

namespace zg {

class HostRunner : public Runner {
 public:
  static Status Check(const RunnerOptions& options);
  explicit HostRunner(const RunnerOptions& options) : options_(options) {}

  Status Prepare(BoundProgram* program, MemoryMeter* meter) override;
  Status Run(InstructionList& list, const StepContext& context) override;
  Status Finish(const StepContext& context) override;

 private:
  Status RunOne(Instruction& instruction, const StepContext& context);
  Status RunWatched(Instruction& instruction, const StepContext& context);
  Status RunKernel(Instruction& instruction, const StepContext& context);
  Status TakeOutput(const Instruction& instruction, const StepContext& context);

  const RunnerOptions options_;
  BoundProgram* program_ = nullptr;
  MemoryMeter* meter_ = nullptr;
};

}  // namespace zg
