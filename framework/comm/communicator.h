// Communicator: the collectives of one rank. All of them work on the arena, one block of memory per
// rank with the same layout everywhere, so that an operand is an offset and a peer's operand is
// found without asking.
//
// Sums over ranks are left folds in rank order, ((g0 + g1) + g2) + ..., whatever the transport and
// the arrival order: same bits on every path. Every rank must call the same collectives in the same
// order; other calls, or a rank that does not come before the deadline, are an error that names the
// collective and the ranks. After an error of a collective the communicator is of no further use.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/status.h"
#include "framework/comm/reduction_types.h"
#include "framework/device/device.h"

namespace zg {

// Bytes [offset + rank * rank_stride, ...) of the arena of `rank`.
struct ArenaOperand {
  int64_t offset = 0;
  int64_t rank_stride = 0;
  int64_t OffsetOn(int rank) const { return offset + rank * rank_stride; }
};

enum class CollectiveKind { kAllReduce, kReduceScatter, kAllGather, kAllToAll };
inline constexpr int kNumCollectiveKinds = 4;
std::string_view CollectiveName(CollectiveKind kind);  // "all_reduce", ...

// Calls since construction and the bytes that this rank sent (its part of what crosses between
// ranks).
struct Traffic {
  int64_t count = 0;
  int64_t bytes = 0;
};
using TrafficCounters = std::array<Traffic, kNumCollectiveKinds>;

// The bytes that one of `num_ranks` ranks sends: T (n-1)/n for reduce-scatter, all-gather and
// all-to-all of T bytes in total, twice that for all-reduce (the chunk T/n is rounded up to whole
// elements).
int64_t BytesSent(CollectiveKind kind, int64_t elements, int64_t element_bytes, int num_ranks);
int64_t BytesSent(CollectiveKind kind, int64_t elements, ReductionTypes types, int num_ranks);

class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  // How the ranks exchange tensors, for reports: "shared memory", "messages", "NCCL".
  virtual std::string_view transport() const = 0;
  // Where the arena is. Collectives on another device than the host are queued behind its other
  // work.
  virtual Device& device() const { return CpuDevice(); }
  // Whether queued collectives can be recorded with the rest (Device::BeginRecording).
  virtual bool can_be_recorded() const { return false; }
  // Waits until the device has done what was queued. Error: a collective failed, or other ranks did
  // not come to one before the deadline.
  virtual Status Synchronize() { return device().Synchronize(); }
  // The same, up to an event of the device.
  virtual Status WaitFor(DeviceEvent& event) { return event.Wait(); }

  // Scratch memory that this transport needs inside the arena (0 when peers' memory is read in
  // place).
  virtual int64_t workspace_bytes() const = 0;

  // Allocates the arena of every rank on its device: `bytes` zeroed bytes, aligned as by
  // Device::Allocate, workspace_bytes() of them at workspace_offset (a multiple of 64) are the
  // communicator's. Collective; may be called again, which replaces the arena. Errors: not enough
  // memory (with the bytes required and available), peers' memory that cannot be mapped. An error
  // on one rank is an error on all.
  virtual StatusOr<std::byte*> AllocateArena(int64_t bytes, int64_t workspace_offset) = 0;

  // `input` holds `elements` (a multiple of size()) on every rank; rank r receives the
  // sum of every rank's r-th part in `output`. With `accumulate` the fold starts from what `output`
  // holds (not with a 16-bit sum). `output` may be the rank's own part of `input` (in place,
  // without `accumulate`) or not overlap it.
  virtual Status ReduceScatter(std::string_view name, ArenaOperand input, ArenaOperand output,
                               int64_t elements, ReductionTypes types, bool accumulate) = 0;

  // Every rank receives all ranks' `input` parts, `part_bytes` each, side by side in rank order in
  // `output`. `input` may be the rank's own part of `output` (in place) or not overlap it.
  virtual Status AllGather(std::string_view name, ArenaOperand input, ArenaOperand output,
                           int64_t part_bytes) = 0;

  // Every rank receives the sum of `input` in `output` (any number of elements). In
  // place or not overlapping. With `accumulate` the fold starts from what `output` holds (equal on
  // all ranks); then not in place.
  virtual Status AllReduce(std::string_view name, ArenaOperand input, ArenaOperand output,
                           int64_t elements, ReductionTypes types, bool accumulate) = 0;

  // Part p of rank r's `input` becomes part r of rank p's `output`; `part_bytes` each. Not
  // overlapping.
  virtual Status AllToAll(std::string_view name, ArenaOperand input, ArenaOperand output,
                          int64_t part_bytes) = 0;

  // Control plane: small host data, not on the step's path, not counted as traffic.
  virtual Status Barrier(std::string_view name) = 0;
  virtual StatusOr<std::vector<std::string>> Exchange(std::string_view name,
                                                      const std::string& mine) = 0;  // by rank

  // Ends the job for every rank with this error; does not return in a multi-process job.
  virtual void Abort(const Status& status) = 0;

  // Bytes of other ranks' arenas that are mapped into this process and resident: not this rank's
  // memory, though the operating system counts them in its resident set.
  virtual int64_t peer_resident_bytes() const { return 0; }

  const TrafficCounters& traffic() const { return traffic_; }
  // For calls that were recorded: sets the counters back and returns what had been counted since
  // `before`, to be added at each replay.
  TrafficCounters TakeBackTraffic(const TrafficCounters& before);
  void AddTraffic(const TrafficCounters& traffic);

 protected:
  // To be called once per collective, with what BytesSent says.
  void CountTraffic(CollectiveKind kind, int64_t bytes_sent);

  TrafficCounters traffic_ = {};
};

// What happened on all ranks: this rank's error if it has one, else the first other rank's, as
// Aborted. Every rank must call this, in the same order.
Status ExchangeStatus(Communicator& communicator, std::string_view name, const Status& mine);

}  // namespace zg
