// A communicator over another one whose collectives are queued on a device. It is for tests that
// look at the arena after each call: it waits for every call, and for the memory that it has
// allocated.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "framework/comm/communicator.h"
#include "tests/testing/communicator_over.h"

namespace zg::testing {

class WaitingGroup : public GroupOver {
 public:
  WaitingGroup(Group* group, Communicator* peers, TrafficMeter* traffic)
      : GroupOver(group, peers->rank(), traffic), peers_(*peers) {}

 protected:
  Status Around(CollectiveKind, const std::function<Status()>& call) override {
    ZG_RETURN_IF_ERROR(call());
    ZG_RETURN_IF_ERROR(peers_.Synchronize());
    const TrafficCounters before = traffic().counters();
    TrafficCounters counted = {};
    AddDifference(before, peers_.traffic(), &counted);
    traffic().Add(counted);
    return Status::Ok();
  }

 private:
  Communicator& peers_;
};

class WaitingArena : public Arena {
 public:
  explicit WaitingArena(Arena* arena) : arena_(*arena) {}
  Device& device() const override { return arena_.device(); }
  int64_t workspace_bytes() const override { return arena_.workspace_bytes(); }
  StatusOr<std::byte*> Allocate(int64_t bytes, int64_t workspace_offset) override {
    ZG_ASSIGN_OR_RETURN(std::byte* const data, arena_.Allocate(bytes, workspace_offset));
    ZG_RETURN_IF_ERROR(device().Synchronize());
    return data;
  }

 private:
  Arena& arena_;
};

class WaitingCommunicator : public CommunicatorOver {
 public:
  explicit WaitingCommunicator(Communicator* peers)
      : CommunicatorOver(peers),
        arena_(&peers->arena()),
        world_(&peers->world(), peers, &traffic_meter()) {}

  Arena& arena() override { return arena_; }
  Group& world() override { return world_; }

  StatusOr<std::unique_ptr<Communicator>> Duplicate() override {
    ZG_ASSIGN_OR_RETURN(std::unique_ptr<Communicator> peers, other().Duplicate());
    auto duplicate = std::make_unique<WaitingCommunicator>(peers.get());
    duplicate->owned_peers_ = std::move(peers);
    return std::unique_ptr<Communicator>(std::move(duplicate));
  }

 protected:
  StatusOr<std::unique_ptr<Group>> MakeGroup(const std::vector<int>& ranks) override {
    ZG_ASSIGN_OR_RETURN(Group * group, other().GroupOf(ranks));
    return std::unique_ptr<Group>(new WaitingGroup(group, &other(), &traffic_meter()));
  }

 private:
  std::unique_ptr<Communicator> owned_peers_;  // of a duplicate
  WaitingArena arena_;
  WaitingGroup world_;
};

}  // namespace zg::testing
