#include "framework/comm/traffic.h"

namespace zg {

std::string_view CollectiveName(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::kAllReduce:
      return "all_reduce";
    case CollectiveKind::kReduceScatter:
      return "reduce_scatter";
    case CollectiveKind::kAllGather:
      return "all_gather";
    case CollectiveKind::kAllToAll:
      return "all_to_all";
  }
  return "?";
}

TrafficCounters TrafficMeter::TakeBack(const TrafficCounters& before) {
  TrafficCounters taken = {};
  for (int i = 0; i < kNumCollectiveKinds; ++i) {
    taken[i] = {counters_[i].count - before[i].count, counters_[i].bytes - before[i].bytes};
  }
  counters_ = before;
  return taken;
}

void TrafficMeter::Add(const TrafficCounters& traffic) {
  for (int i = 0; i < kNumCollectiveKinds; ++i) {
    counters_[i].count += traffic[i].count;
    counters_[i].bytes += traffic[i].bytes;
  }
}

}  // namespace zg
