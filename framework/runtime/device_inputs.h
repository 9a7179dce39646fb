// DeviceInputs: the step contexts and the inputs that a device reads from the host in each run, in
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
                                                        const std::vector<int64_t>& input_bytes,
                                                        size_t num_groups);

  // Switches to the next set and waits until the device has finished the run that used it last.
  // Errors: those of collectives in that run. The updates of a group read a context of their own,
  // whose step is the number of the update.
  Status Begin(const StepContext& context, const std::vector<int64_t>& update_numbers);
  void Fill(int input, const void* data);
  int set() const { return set_; }

  // Queue copies from this set into the device's memory. The copies may be recorded, because a set
  // never moves.
  Status QueueContexts();
  Status QueueInput(int input, void* to_device);

  // Call after the run is queued.
  Status End();

  // That of a group's updates; -1: of all else.
  const StepContext* device_context(int group) const {
    return reinterpret_cast<const StepContext*>(device_contexts_.get()) + 1 + group;
  }

 private:
  struct Set {
    DeviceBytes contexts;
    std::vector<DeviceBytes> inputs;
    std::unique_ptr<DeviceEvent> is_read;
  };

  DeviceInputs(Communicator* communicator, std::vector<int64_t> input_bytes, size_t num_groups)
      : communicator_(*communicator),
        device_(communicator->device()),
        input_bytes_(std::move(input_bytes)),
        context_bytes_(static_cast<int64_t>((1 + num_groups) * sizeof(StepContext))) {}

  Communicator& communicator_;
  Device& device_;
  const std::vector<int64_t> input_bytes_;
  const int64_t context_bytes_;
  DeviceBytes device_contexts_;
  Set sets_[kNumSets];
  int set_ = 0;
};

}  // namespace zg
