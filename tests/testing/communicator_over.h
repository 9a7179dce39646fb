// A communicator over another one, for tests that act around its collectives: calls that a derived
// class does not override go to the other.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "framework/comm/communicator.h"

namespace zg::testing {

class GroupOver : public Group {
 public:
  GroupOver(Group* group, int job_rank, TrafficMeter* traffic)
      : Group(group->ranks(), job_rank, traffic), group_(*group) {}

  Status ReduceScatter(std::string_view name, ArenaOperand input, ArenaOperand output,
                       int64_t elements, ReductionTypes types, bool accumulate) override {
    return Around(CollectiveKind::kReduceScatter, [&] {
      return group_.ReduceScatter(name, input, output, elements, types, accumulate);
    });
  }
  Status AllGather(std::string_view name, ArenaOperand input, ArenaOperand output,
                   int64_t part_bytes) override {
    return Around(CollectiveKind::kAllGather,
                  [&] { return group_.AllGather(name, input, output, part_bytes); });
  }
  Status AllReduce(std::string_view name, ArenaOperand input, ArenaOperand output, int64_t elements,
                   ReductionTypes types, bool accumulate) override {
    return Around(CollectiveKind::kAllReduce, [&] {
      return group_.AllReduce(name, input, output, elements, types, accumulate);
    });
  }
  Status AllToAll(std::string_view name, ArenaOperand input, ArenaOperand output,
                  int64_t part_bytes) override {
    return Around(CollectiveKind::kAllToAll,
                  [&] { return group_.AllToAll(name, input, output, part_bytes); });
  }

 protected:
  // Every collective: `call` is the other group's call.
  virtual Status Around(CollectiveKind kind, const std::function<Status()>& call) = 0;

 private:
  Group& group_;
};

class CommunicatorOver : public Communicator {
 public:
  // `other` must outlive this.
  explicit CommunicatorOver(Communicator* other) : other_(*other) {}
  ~CommunicatorOver() override { ReleaseGroups(); }

  int rank() const override { return other_.rank(); }
  int size() const override { return other_.size(); }
  Status Barrier(std::string_view name) override { return other_.Barrier(name); }
  StatusOr<std::vector<std::string>> Exchange(std::string_view name,
                                              const std::string& mine) override {
    return other_.Exchange(name, mine);
  }
  Status ExchangeWord(std::string_view name, uint64_t mine, uint64_t* all) override {
    return other_.ExchangeWord(name, mine, all);
  }
  void Abort(const Status& status) override { other_.Abort(status); }
  std::string_view transport() const override { return other_.transport(); }
  Arena& arena() override { return other_.arena(); }
  Group& world() override { return other_.world(); }

 protected:
  Communicator& other() const { return other_; }

 private:
  Communicator& other_;
};

}  // namespace zg::testing
