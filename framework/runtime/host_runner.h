// HostRunner: runs instructions on the host, one after the other, in the calling thread; their
// kernels may share their work with other threads. If the program starts collectives ahead, a
// separate thread runs the collectives.
#pragma once

#include <memory>
#include <vector>

#include "framework/base/threads.h"
#include "framework/comm/communicator.h"
#include "framework/runtime/communication_queue.h"
#include "framework/runtime/runner.h"

namespace zg {

class HostRunner : public Runner {
 public:
  static Status Check(const RunnerOptions& options);
  HostRunner(Communicator* communicator, const RunnerOptions& options)
      : communicator_(*communicator), options_(options), threads_(options.threads) {}
  ~HostRunner() override { communicator_.set_only_waits(true); }

  Status Prepare(BoundProgram* program, MemoryMeter* meter) override;
  Status Run(InstructionList& list, const StepContext& context) override;
  Status Finish(const StepContext& context) override;
  bool leaves_work() const override { return queue_ != nullptr; }
  Status Settle() override;

 private:
  Status RunOne(Instruction& instruction, const StepContext& context);
  Status RunWatched(Instruction& instruction, const StepContext& context);
  Status RunProfiled(Instruction& instruction, const StepContext& context);
  bool IsForQueue(const Instruction& instruction) const {
    return queue_ != nullptr && ir::MovesData(*instruction.node);
  }
  Status Communicate(const Instruction& instruction, const StepContext& context);
  Status Wait(const Instruction& wait);
  Status WaitFor(int64_t ticket);
  Status RunKernel(Instruction& instruction, const StepContext& context);
  Status TakeOutput(const Instruction& instruction, const StepContext& context);

  Communicator& communicator_;
  const RunnerOptions options_;
  Threads threads_;
  BoundProgram* program_ = nullptr;
  MemoryMeter* meter_ = nullptr;
  std::unique_ptr<CommunicationQueue> queue_;  // null: no collective is started ahead
  std::vector<int64_t> tickets_;               // of the last run, by the index of the instruction
};

}  // namespace zg
