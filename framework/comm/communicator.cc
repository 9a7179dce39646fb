#include "framework/comm/communicator.h"

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

int64_t BytesSent(CollectiveKind kind, int64_t elements, int64_t element_bytes, int num_ranks) {
  const int64_t chunk_elements = (elements + num_ranks - 1) / num_ranks;
  const int64_t once = chunk_elements * element_bytes * (num_ranks - 1);
  return kind == CollectiveKind::kAllReduce ? 2 * once : once;
}

int64_t BytesSent(CollectiveKind kind, int64_t elements, ReductionTypes types, int num_ranks) {
  const int64_t term_bytes = SizeOf(types.terms);
  if (kind != CollectiveKind::kAllReduce) return BytesSent(kind, elements, term_bytes, num_ranks);
  return BytesSent(CollectiveKind::kReduceScatter, elements, term_bytes, num_ranks) +
         BytesSent(CollectiveKind::kAllGather, elements, SizeOf(types.sum), num_ranks);
}

void Communicator::CountTraffic(CollectiveKind kind, int64_t bytes_sent) {
  Traffic& traffic = traffic_[static_cast<int>(kind)];
  ++traffic.count;
  traffic.bytes += bytes_sent;
}

TrafficCounters Communicator::TakeBackTraffic(const TrafficCounters& before) {
  TrafficCounters taken = {};
  for (int i = 0; i < kNumCollectiveKinds; ++i) {
    taken[i] = {traffic_[i].count - before[i].count, traffic_[i].bytes - before[i].bytes};
  }
  traffic_ = before;
  return taken;
}

void Communicator::AddTraffic(const TrafficCounters& traffic) {
  for (int i = 0; i < kNumCollectiveKinds; ++i) {
    traffic_[i].count += traffic[i].count;
    traffic_[i].bytes += traffic[i].bytes;
  }
}

Status ExchangeStatus(Communicator& communicator, std::string_view name, const Status& mine) {
  const auto messages = communicator.Exchange(name, mine.ok() ? "" : mine.ToString());
  if (!mine.ok()) return mine;
  ZG_RETURN_IF_ERROR(messages.status());
  for (int rank = 0; rank < communicator.size(); ++rank) {
    const std::string& message = (*messages)[rank];
    if (!message.empty()) return Aborted("{}: rank {} failed: {}", name, rank, message);
  }
  return Status::Ok();
}

}  // namespace zg
