// A communicator whose collectives never complete: whoever waits for a device reaches the deadline.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "framework/comm/ordered_group.h"

namespace zg::testing {

class StuckGroup : public OrderedGroup {
 public:
  StuckGroup(const OrderedArena* arena, TrafficMeter* traffic)
      : OrderedGroup({0}, 0, arena, traffic) {}

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

// For one rank: nothing queued completes until the end of the step.
class StuckCommunicator : public OrderedCommunicator {
 public:
  StuckCommunicator(Device* device, ControlPlane* host)
      : OrderedCommunicator(device, host, 256), world_(&ordered_arena(), &traffic_meter()) {}
  std::string_view transport() const override { return "none"; }
  Group& world() override { return world_; }
  Status WaitFor(DeviceEvent& event) override {
    ZG_ASSIGN_OR_RETURN(const bool is_done, event.IsDone());
    return is_done ? Status::Ok() : DeadlineExceeded("no progress");
  }

 protected:
  StatusOr<std::unique_ptr<Group>> MakeGroup(const std::vector<int>&) override {
    return InvalidArgument("there is one rank");
  }

 private:
  StuckGroup world_;
};

}  // namespace zg::testing
