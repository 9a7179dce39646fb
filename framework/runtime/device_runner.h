// DeviceRunner: queues instructions on a device. The host waits once a step: at its end, or, if
// nothing after its outputs can fail, only for these. In the latter case the device updates
// parameters while the host prepares the next step.
//
// If the program starts collectives ahead, all of them go to a queue of their own. Each waits there
// for the work queued before it, and every reader of its result waits for it. At the end of a
// recording, and of a step, the queues are joined.
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
  void ForgetRecordings() override { recordings_ = std::vector<Recordings>(recordings_.size()); }

 private:
  struct Recorded {
    std::unique_ptr<RecordedWork> work;
    TrafficCounters traffic = {};  // of one replay
  };
  // The recordings of a list of instructions. They differ by StepContext::first_micro_step, which
  // collectives read on the host, and by the set of inputs that they read.
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
  bool MayLeaveWork(const StepContext& context) const;  // for the updates
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
  std::vector<DeviceBytes> pinned_outputs_;                // by slot: the destination of the
                                                           // device's copies
  DeviceBytes fault_;                                      // a DeviceFault in the device's memory
  DeviceBytes pinned_fault_;                               // its copy on the host
  std::vector<Recordings> recordings_;                     // by list
  bool is_recording_ = false;                              // work is recorded, not run, while this
                                                           // is set
  std::vector<std::unique_ptr<DeviceEvent>> transferred_;  // by instruction; null: not a transfer
  std::unique_ptr<DeviceEvent> computed_;                  // null: no collective is started ahead
  std::vector<bool> is_on_its_way_;           // by instruction: in flight, not joined since it was
                                              // queued
  const Instruction* last_output_ = nullptr;  // of a step; null: the updates have none
  std::unique_ptr<DeviceEvent> outputs_are_done_;
  bool leaves_work_ = false;  // after outputs_are_done_, since the last step
  int64_t last_step_ = 0;
};

}  // namespace zg
