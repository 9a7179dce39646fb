// Communicator: the connection of one rank of a job to the others. It is the job's control plane
// (control_plane.h) and owns the arena (arena.h), the groups of ranks (group.h) and the traffic
// counters (traffic.h).
//
//   ZG_ASSIGN_OR_RETURN(std::byte* memory, communicator.arena().Allocate(bytes, 0));
//   ZG_RETURN_IF_ERROR(communicator.world().AllReduce("sum", input, output, n, types, false));
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <string_view>
#include <vector>

#include "framework/base/status.h"
#include "framework/comm/arena.h"
#include "framework/comm/control_plane.h"
#include "framework/comm/group.h"
#include "framework/comm/traffic.h"
#include "framework/device/device.h"

namespace zg {

class Communicator : public ControlPlane {
 public:
  // The transport of tensors, for reports: "shared memory", "messages", "NCCL".
  virtual std::string_view transport() const = 0;

  // The host of each rank of the job, if ranks exchange messages: any number, the same for ranks on
  // one host. Empty: there are no messages.
  virtual std::vector<int> hosts() const { return {}; }

  virtual Arena& arena() = 0;
  Device& device() { return arena().device(); }

  // Whether collectives are queued on the device like its other work. Then they can be recorded
  // with it (Device::BeginRecording), and can overlap it in the queue of transfers.
  virtual bool queues_on_device() const { return false; }
  // Waits until the device has done its queued work. Errors: a collective failed; other ranks did
  // not reach one before the deadline.
  virtual Status Synchronize() { return device().Synchronize(); }
  // The same for the work before an event of the device.
  virtual Status WaitFor(DeviceEvent& event) { return event.Wait(); }

  // The group of all ranks.
  virtual Group& world() = 0;
  // The group of these ranks, which must include this one, in this order. It lives as long as the
  // communicator; a second request returns the same group. Every rank of the job must call this, in
  // the same order, with groups that together hold every rank once. Error: `ranks` are not such a
  // group. With `for_thread`, a separate thread may use the group while another uses the control
  // plane and world().
  StatusOr<Group*> GroupOf(const std::vector<int>& ranks, bool for_thread = false);

  // Another connection of the same ranks over the same transport and device, with an arena and counters
  // of its own, for a program beside the one that uses this. This one must outlive it. Every rank must
  // call this. Errors: those of the transport; one that cannot.
  virtual StatusOr<std::unique_ptr<Communicator>> Duplicate();

  // Whether groups may be used by another thread than the control plane.
  virtual bool can_have_threads() const { return false; }

  // Whether the rank only waits while collectives run, as at first. Otherwise it computes beside them,
  // and they leave it the processor while nothing has arrived.
  void set_only_waits(bool only_waits) { only_waits_.store(only_waits, std::memory_order_relaxed); }
  const std::atomic<bool>& only_waits() const { return only_waits_; }

  // Held by a thread during a call in which it uses the communicator for itself. status(): an error if
  // another thread is in such a call.
  class Call {
   public:
    explicit Call(Communicator& communicator) : communicator_(communicator) {
      is_alone_ = !communicator_.is_called_.exchange(true);
    }
    ~Call() {
      if (is_alone_) communicator_.is_called_.store(false);
    }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;
    Status status() const;

   private:
    Communicator& communicator_;
    bool is_alone_;
  };

  TrafficMeter& traffic_meter() { return traffic_; }
  const TrafficCounters& traffic() const { return traffic_.counters(); }

 protected:
  // A group that is not all ranks in their order. Collective like GroupOf.
  virtual StatusOr<std::unique_ptr<Group>> MakeGroup(const std::vector<int>& ranks) = 0;
  // For the destructor of a derived class that owns objects used by its groups.
  void ReleaseGroups() { made_groups_.clear(); }

 private:
  std::atomic<bool> only_waits_ = true;
  std::atomic<bool> is_called_ = false;
  TrafficMeter traffic_;
  std::vector<std::unique_ptr<Group>> made_groups_;
  std::map<std::vector<int>, Group*> groups_;  // the latest group of these ranks
};

// Returns 0, 1, ..., num_ranks - 1.
std::vector<int> AllRanks(int num_ranks);

}  // namespace zg
