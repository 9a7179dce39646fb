// A communicator over another one that knows what came to the rank in each group of ranks.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "framework/comm/communicator.h"

namespace zg::testing {

using BytesByGroup = std::map<std::vector<int>, int64_t>;  // by the job's ranks in the group

class MeteredGroup : public Group {
 public:
  MeteredGroup(Group* group, Communicator* host, TrafficMeter* traffic, BytesByGroup* bytes)
      : Group(group->ranks(), host->rank(), traffic),
        group_(*group),
        host_(*host),
        bytes_((*bytes)[group->ranks()]) {}

  Status ReduceScatter(std::string_view name, ArenaOperand input, ArenaOperand output,
                       int64_t elements, ReductionTypes types, bool accumulate) override {
    return Metered(CollectiveKind::kReduceScatter, [&] {
      return group_.ReduceScatter(name, input, output, elements, types, accumulate);
    });
  }
  Status AllGather(std::string_view name, ArenaOperand input, ArenaOperand output,
                   int64_t part_bytes) override {
    return Metered(CollectiveKind::kAllGather,
                   [&] { return group_.AllGather(name, input, output, part_bytes); });
  }
  Status AllReduce(std::string_view name, ArenaOperand input, ArenaOperand output, int64_t elements,
                   ReductionTypes types, bool accumulate) override {
    return Metered(CollectiveKind::kAllReduce, [&] {
      return group_.AllReduce(name, input, output, elements, types, accumulate);
    });
  }
  Status AllToAll(std::string_view name, ArenaOperand input, ArenaOperand output,
                  int64_t part_bytes) override {
    return Metered(CollectiveKind::kAllToAll,
                   [&] { return group_.AllToAll(name, input, output, part_bytes); });
  }

 private:
  template <typename Call>
  Status Metered(CollectiveKind kind, const Call& call) {
    const auto received = [&] { return host_.traffic()[static_cast<int>(kind)].bytes; };
    const int64_t before = received();
    traffic().BeginCall(kind);
    const Status status = call();
    traffic().AddReceived(received() - before);
    bytes_ += received() - before;
    return status;
  }

  Group& group_;
  Communicator& host_;
  int64_t& bytes_;
};

class MeteredCommunicator : public Communicator {
 public:
  // `host` and `bytes` outlive this.
  MeteredCommunicator(Communicator* host, BytesByGroup* bytes)
      : host_(*host), bytes_(*bytes), world_(&host->world(), host, &traffic_meter(), bytes) {}
  ~MeteredCommunicator() override { ReleaseGroups(); }

  int rank() const override { return host_.rank(); }
  int size() const override { return host_.size(); }
  Status Barrier(std::string_view name) override { return host_.Barrier(name); }
  StatusOr<std::vector<std::string>> Exchange(std::string_view name,
                                              const std::string& mine) override {
    return host_.Exchange(name, mine);
  }
  Status ExchangeWord(std::string_view name, uint64_t mine, uint64_t* all) override {
    return host_.ExchangeWord(name, mine, all);
  }
  void Abort(const Status& status) override { host_.Abort(status); }
  std::string_view transport() const override { return host_.transport(); }
  Arena& arena() override { return host_.arena(); }
  Group& world() override { return world_; }

 protected:
  StatusOr<std::unique_ptr<Group>> MakeGroup(const std::vector<int>& ranks) override {
    ZG_ASSIGN_OR_RETURN(Group * group, host_.GroupOf(ranks));
    return std::unique_ptr<Group>(
        std::make_unique<MeteredGroup>(group, &host_, &traffic_meter(), &bytes_));
  }

 private:
  Communicator& host_;
  BytesByGroup& bytes_;
  MeteredGroup world_;
};

}  // namespace zg::testing
