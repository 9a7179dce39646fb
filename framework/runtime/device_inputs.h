// DeviceInputs: the step context and the inputs that a device reads from the host in each run, in
// pinned memory. Two sets alternate, so that the host prepares a run while the device still works
// on the previous one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "framework/base/status.h"
#include "framework/comm/communicator.h"
#include "framework/device/device.h"
#include "framework/kernels/kernel.h"

namespace zg {

class DeviceInputs {
 public:
  static constexpr int kNumSets = 2;

  // For the device of the communicator, which must outlive the result.
  static StatusOr<std::unique_ptr<DeviceInputs>> Create(Communicator* communicator,
                                                        const std::vector<int64_t>& input_bytes);

  // Switches to the next set and waits until the device has finished the run that used it last.
  // Errors: those of collectives in that run.
  Status Begin(const StepContext& context);
  void Fill(int input, const void* data);
  int set() const { return set_; }

  // Queue copies from this set into the device's memory. The copies may be recorded, because a set
  // never moves.
  Status QueueContext();
  Status QueueInput(int input, void* to_device);

  // Call after the run is queued.
  Status End();

  const StepContext* device_context() const {
    return reinterpret_cast<const StepContext*>(device_context_.get());
  }

 private:
  struct Set {
    DeviceBytes context;
    std::vector<DeviceBytes> inputs;
    std::unique_ptr<DeviceEvent> is_read;
  };

  DeviceInputs(Communicator* communicator, std::vector<int64_t> input_bytes)
      : communicator_(*communicator),
        device_(communicator->device()),
        input_bytes_(std::move(input_bytes)) {}

  Communicator& communicator_;
  Device& device_;
  const std::vector<int64_t> input_bytes_;
  DeviceBytes device_context_;
  Set sets_[kNumSets];
  int set_ = 0;
};

}  // namespace zg
