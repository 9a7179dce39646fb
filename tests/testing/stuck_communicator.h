// A communicator whose collectives do not get through: whoever waits for a device meets the
// deadline.
#pragma once

#include <string_view>
#include <vector>

#include "framework/comm/ordered_collectives.h"

namespace zg::testing {

// For one rank: nothing that is queued gets through until the end of the step.
class StuckCommunicator : public OrderedCollectives {
 public:
  StuckCommunicator(Device* device, Communicator* host) : OrderedCollectives(device, host, 256) {}
  std::string_view transport() const override { return "none"; }
  Status WaitFor(DeviceEvent& event) override {
    ZG_ASSIGN_OR_RETURN(const bool is_done, event.IsDone());
    return is_done ? Status::Ok() : DeadlineExceeded("no progress");
  }

 protected:
  Status SendAndReceive(const std::vector<Message>&, const std::vector<Message>&) override {
    return Status::Ok();
  }
  Status Fold(ReductionTypes, const FoldInputs&, int64_t, std::byte*) override {
    return Status::Ok();
  }
  Status GatherEqualParts(const std::byte*, int64_t, std::byte*) override { return Status::Ok(); }
  Status Queued(std::string_view, std::string_view) override { return Status::Ok(); }
};

}  // namespace zg::testing
