// DeviceRunner: queues instructions on a device. The host waits once a step, at its end, or where
// nothing behind its outputs can fail, for these: then the device updates parameters while the host
// prepares the next step.
//
// Where the program starts collectives ahead, all go to a queue of their own. Each waits there for what
// was queued before it, and whoever reads its result waits for it. At the end of what is recorded, and
// of a step, the queues are joined.
#pragma once

#include <memory>
#include <vector>

#include "framework/device/device.h"
#include "framework/runtime/device_inputs.h"
#include "framework/runtime/queue_limit.h"
#include "framework/runtime/runner.h"

namespace zg {

class DeviceRunner : public Runner {
 public:
  static Status Check(const Communicator& communicator, const RunnerOptions& options);
  DeviceRunner(Communicator* communicator, const RunnerOptions& options)
      : communicator_(*communicator),
        device_(communicator->device()),
        records_(options.record),
        queue_limit_(communicator),
        transfers_limit_(communicator) {}
  ~DeviceRunner() override;

  Status Prepare(BoundProgram* program, MemoryMeter* meter) override;
  Status Run(InstructionList& list, const StepContext& context) override;
  Status Finish(const StepContext& context) override;
  bool leaves_work() const override { return leaves_work_; }
  Status Settle() override;

 private:
  struct Recorded {
    std::unique_ptr<RecordedWork> work;
    TrafficCounters traffic = {};  // of one replay
  };
  // Of a list of instructions, by StepContext::first_micro_step, which collectives look at on the
  // host; what is recorded also by the set of inputs that it reads.
  struct Recordings {
    bool has_run[2] = {false, false};
    Recorded recorded[DeviceInputs::kNumSets][2];
  };

  Status Allocate();
  Status MakeEventsOfTransfers();
  Status FillInputs(const InstructionList& list);
  Status QueueList(InstructionList& list, const StepContext& context);
  Status QueueOne(Instruction& instruction, const StepContext& context);
  Status QueueKernel(Instruction& instruction, const StepContext& context);
  Status QueueTransfer(Instruction& instruction, const StepContext& context);
  Status QueueWait(const Instruction& wait);
  Status JoinTransfers();
  bool MayLeaveWork(const StepContext& context) const;  // of the updates
  Status QueueEndOfOutputs();
  Status CheckFault(int64_t step) const;
  Status Record(InstructionList& list, const StepContext& context, Recorded* recorded);
  Status FaultStatus(const DeviceFault& fault, int64_t step) const;

  Communicator& communicator_;
  Device& device_;
  const bool records_;
  QueueLimit queue_limit_;
  QueueLimit transfers_limit_;
  BoundProgram* program_ = nullptr;
  MemoryMeter* meter_ = nullptr;
  std::unique_ptr<DeviceInputs> inputs_;
  std::vector<DeviceBytes> pinned_outputs_;                // by slot: where the device puts them
  DeviceBytes fault_;                                      // a DeviceFault in the device's memory
  DeviceBytes pinned_fault_;                               // where it is copied to
  std::vector<Recordings> recordings_;                     // by list
  bool is_recording_ = false;                              // nothing is queued then
  std::vector<std::unique_ptr<DeviceEvent>> transferred_;  // by instruction; null: no transfer
  std::unique_ptr<DeviceEvent> computed_;                  // null: nothing is started ahead
  std::vector<bool> is_on_its_way_;           // by instruction: not joined since it was queued
  const Instruction* last_output_ = nullptr;  // of a step; null: none is among the updates
  std::unique_ptr<DeviceEvent> outputs_are_done_;
  bool leaves_work_ = false;  // behind outputs_are_done_, since the last step
  int64_t last_step_ = 0;
};

}  // namespace zg
