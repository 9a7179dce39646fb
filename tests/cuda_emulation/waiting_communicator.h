// A communicator over one whose collectives are queued on a device, for tests that look at the arena
// after each: it waits for every call, and for the memory that it has allocated.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "framework/comm/communicator.h"

namespace zg::testing {

class WaitingGroup : public Group {
 public:
  WaitingGroup(Group* group, Communicator* peers, TrafficMeter* traffic)
      : Group(group->ranks(), peers->rank(), traffic), group_(*group), peers_(*peers) {}

  Status ReduceScatter(std::string_view name, ArenaOperand input, ArenaOperand output,
                       int64_t elements, ReductionTypes types, bool accumulate) override {
    return Done(group_.ReduceScatter(name, input, output, elements, types, accumulate));
  }
  Status AllGather(std::string_view name, ArenaOperand input, ArenaOperand output,
                   int64_t part_bytes) override {
    return Done(group_.AllGather(name, input, output, part_bytes));
  }
  Status AllReduce(std::string_view name, ArenaOperand input, ArenaOperand output, int64_t elements,
                   ReductionTypes types, bool accumulate) override {
    return Done(group_.AllReduce(name, input, output, elements, types, accumulate));
  }
  Status AllToAll(std::string_view name, ArenaOperand input, ArenaOperand output,
                  int64_t part_bytes) override {
    return Done(group_.AllToAll(name, input, output, part_bytes));
  }

 private:
  Status Done(const Status& queued) {
    ZG_RETURN_IF_ERROR(queued);
    ZG_RETURN_IF_ERROR(peers_.Synchronize());
    const TrafficCounters before = traffic().counters();
    TrafficCounters counted = {};
    AddDifference(before, peers_.traffic(), &counted);
    traffic().Add(counted);
    return Status::Ok();
  }

  Group& group_;
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

class WaitingCommunicator : public Communicator {
 public:
  WaitingCommunicator(Communicator* host, Communicator* peers)
      : host_(*host),
        peers_(*peers),
        arena_(&peers->arena()),
        world_(&peers->world(), peers, &traffic_meter()) {}
  ~WaitingCommunicator() override { ReleaseGroups(); }

  int rank() const override { return host_.rank(); }
  int size() const override { return host_.size(); }
  Status Barrier(std::string_view name) override { return peers_.Barrier(name); }
  StatusOr<std::vector<std::string>> Exchange(std::string_view name,
                                              const std::string& mine) override {
    return peers_.Exchange(name, mine);
  }
  Status ExchangeWord(std::string_view name, uint64_t mine, uint64_t* all) override {
    return peers_.ExchangeWord(name, mine, all);
  }
  void Abort(const Status& status) override { peers_.Abort(status); }
  std::string_view transport() const override { return peers_.transport(); }
  Arena& arena() override { return arena_; }
  Group& world() override { return world_; }

 protected:
  StatusOr<std::unique_ptr<Group>> MakeGroup(const std::vector<int>& ranks) override {
    ZG_ASSIGN_OR_RETURN(Group * group, peers_.GroupOf(ranks));
    return std::unique_ptr<Group>(new WaitingGroup(group, &peers_, &traffic_meter()));
  }

 private:
  Communicator& host_;
  Communicator& peers_;
  WaitingArena arena_;
  WaitingGroup world_;
};

}  // namespace zg::testing
