// Traffic: the bytes that the collectives of a rank received from other ranks. They are counted
// where they are moved (a copy from a peer's memory, a message that arrives, a call of NCCL), so
// that a wrong prediction shows (passes/predict_traffic.h).
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace zg {

enum class CollectiveKind { kAllReduce, kReduceScatter, kAllGather, kAllToAll };
inline constexpr int kNumCollectiveKinds = 4;
std::string_view CollectiveName(CollectiveKind kind);  // "all_reduce", ...

// Calls since construction, and the bytes that came to this rank from others.
struct Traffic {
  int64_t count = 0;
  int64_t bytes = 0;
};
using TrafficCounters = std::array<Traffic, kNumCollectiveKinds>;

// Adds the difference between the counters `before` and `after`.
void AddDifference(const TrafficCounters& before, const TrafficCounters& after,
                   TrafficCounters* sum);

// The counters of one rank, over all its groups.
class TrafficMeter {
 public:
  // The bytes that are added from here on belong to a call of this kind.
  void BeginCall(CollectiveKind kind) {
    current_ = &counters_[static_cast<int>(kind)];
    ++current_->count;
  }
  // Must be called by any code that copies or receives `bytes` from another rank.
  void AddReceived(int64_t bytes) { current_->bytes += bytes; }

  const TrafficCounters& counters() const { return counters_; }

  // For calls that were recorded and have not run: resets the counters to `before` and returns the
  // difference, which each replay adds.
  TrafficCounters TakeBack(const TrafficCounters& before);
  void Add(const TrafficCounters& traffic);

 private:
  TrafficCounters counters_ = {};
  Traffic* current_ = &counters_[0];
};

}  // namespace zg
