#include "framework/runtime/device_inputs.h"

#include <cstring>
#include <utility>

namespace zg {

StatusOr<std::unique_ptr<DeviceInputs>> DeviceInputs::Create(
    Communicator* communicator, const std::vector<int64_t>& input_bytes, size_t num_groups) {
  std::unique_ptr<DeviceInputs> inputs(new DeviceInputs(communicator, input_bytes, num_groups));
  Device& device = inputs->device_;
  ZG_ASSIGN_OR_RETURN(inputs->device_contexts_, device.Allocate(inputs->context_bytes_));
  for (Set& set : inputs->sets_) {
    ZG_ASSIGN_OR_RETURN(set.contexts, device.AllocatePinned(inputs->context_bytes_));
    for (const int64_t bytes : input_bytes) {
      ZG_ASSIGN_OR_RETURN(DeviceBytes input, device.AllocatePinned(bytes));
      set.inputs.push_back(std::move(input));
    }
    ZG_ASSIGN_OR_RETURN(set.is_read, device.MakeEvent());
  }
  return inputs;
}

Status DeviceInputs::Begin(const StepContext& context, const std::vector<int64_t>& update_numbers) {
  set_ = (set_ + 1) % kNumSets;
  ZG_RETURN_IF_ERROR(communicator_.WaitFor(*sets_[set_].is_read));
  std::byte* to = sets_[set_].contexts.get();
  std::memcpy(to, &context, sizeof(context));
  for (const int64_t number : update_numbers) {
    StepContext own = context;
    own.step = number;
    std::memcpy(to += sizeof(own), &own, sizeof(own));
  }
  return Status::Ok();
}

void DeviceInputs::Fill(int input, const void* data) {
  std::memcpy(sets_[set_].inputs[input].get(), data, input_bytes_[input]);
}

Status DeviceInputs::QueueContexts() {
  return device_.CopyIn(device_contexts_.get(), sets_[set_].contexts.get(), context_bytes_);
}

Status DeviceInputs::QueueInput(int input, void* to_device) {
  return device_.CopyIn(to_device, sets_[set_].inputs[input].get(), input_bytes_[input]);
}

Status DeviceInputs::End() { return sets_[set_].is_read->Record(); }

}  // namespace zg
