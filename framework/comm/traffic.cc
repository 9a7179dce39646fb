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

void AddDifference(const TrafficCounters& before, const TrafficCounters& after,
                   TrafficCounters* sum) {
  for (int i = 0; i < kNumCollectiveKinds; ++i) {
    (*sum)[i].count += after[i].count - before[i].count;
    (*sum)[i].bytes += after[i].bytes - before[i].bytes;
  }
}

TrafficCounters TrafficMeter::TakeBack(const TrafficCounters& before) {
  TrafficCounters taken = {};
  AddDifference(before, counters_, &taken);
  counters_ = before;
  return taken;
}

void TrafficMeter::Add(const TrafficCounters& traffic) { AddDifference({}, traffic, &counters_); }

}  // namespace zg
