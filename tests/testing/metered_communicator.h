// A communicator over another one that counts the bytes received by the rank in each group of
// ranks.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "framework/comm/communicator.h"
#include "tests/testing/communicator_over.h"

namespace zg::testing {

using BytesByGroup = std::map<std::vector<int>, int64_t>;  // key: the ranks of the job in the group

class MeteredGroup : public GroupOver {
 public:
  MeteredGroup(Group* group, Communicator* host, TrafficMeter* traffic, BytesByGroup* bytes)
      : GroupOver(group, host->rank(), traffic), host_(*host), bytes_((*bytes)[group->ranks()]) {}

 protected:
  Status Around(CollectiveKind kind, const std::function<Status()>& call) override {
    const auto received = [&] { return host_.traffic()[static_cast<int>(kind)].bytes; };
    const int64_t before = received();
    traffic().BeginCall(kind);
    const Status status = call();
    traffic().AddReceived(received() - before);
    bytes_ += received() - before;
    return status;
  }

 private:
  Communicator& host_;
  int64_t& bytes_;
};

class MeteredCommunicator : public CommunicatorOver {
 public:
  // `host` and `bytes` must outlive this.
  MeteredCommunicator(Communicator* host, BytesByGroup* bytes)
      : CommunicatorOver(host),
        bytes_(*bytes),
        world_(&host->world(), host, &traffic_meter(), bytes) {}

  Group& world() override { return world_; }

 protected:
  StatusOr<std::unique_ptr<Group>> MakeGroup(const std::vector<int>& ranks) override {
    ZG_ASSIGN_OR_RETURN(Group * group, other().GroupOf(ranks));
    return std::unique_ptr<Group>(
        std::make_unique<MeteredGroup>(group, &other(), &traffic_meter(), &bytes_));
  }

 private:
  BytesByGroup& bytes_;
  MeteredGroup world_;
};

}  // namespace zg::testing
