#include "framework/comm/sum_route.h"

#include <algorithm>
#include <cstddef>

namespace zg {
namespace {

constexpr int64_t kMinPartBytes = 16 << 10;

// Positions [begin, end) on one host.
struct Neighbours {
  int begin = 0;
  int end = 0;
  int size() const { return end - begin; }
};

// In the order of the additions.
std::vector<Neighbours> HostsInOrder(const std::vector<int>& hosts) {
  std::vector<Neighbours> in_order;
  for (int position = 0; position < static_cast<int>(hosts.size()); ++position) {
    const int host = hosts[position];
    if (!in_order.empty() && hosts[in_order.back().begin] == host) {
      in_order.back().end = position + 1;
      continue;
    }
    in_order.push_back({position, position + 1});
  }
  return in_order;
}

// Whether the sum of a part goes along the hosts before and behind that of its owner.
struct Detours {
  bool before = false;
  bool behind = false;
};

Detours DetoursFor(const std::vector<Neighbours>& in_order, size_t own, const SumBytes& bytes) {
  const auto num_before = static_cast<int64_t>(own);
  const int64_t num_behind = static_cast<int64_t>(in_order.size()) - 1 - num_before;
  const int64_t terms_before = in_order[own].begin * bytes.term;
  const int64_t terms_behind = (in_order.back().end - in_order[own].end) * bytes.term;
  const int64_t start = bytes.continues ? bytes.sum : 0;
  return {num_before * bytes.running + start < terms_before,
          num_behind * bytes.running + bytes.sum < terms_behind};
}

// The most that a host sends or receives in the sums of all parts, directly or along the hosts.
int64_t MostBytes(const std::vector<Neighbours>& in_order, const SumBytes& bytes, bool along) {
  const size_t num_hosts = in_order.size();
  std::vector<int64_t> sent(num_hosts), received(num_hosts);
  for (size_t own = 0; own < num_hosts; ++own) {
    const auto move = [&](size_t from, size_t to, int64_t moved) {
      sent[from] += in_order[own].size() * moved;
      received[to] += in_order[own].size() * moved;
    };
    const Detours detours = along ? DetoursFor(in_order, own, bytes) : Detours{};
    for (size_t host = 0; host < num_hosts; ++host) {
      if (host == own) continue;
      const bool goes_along = host < own ? detours.before : detours.behind;
      if (!goes_along) move(host, own, in_order[host].size() * bytes.term);
      if (goes_along && host < own) move(host, host + 1, bytes.running);
      if (goes_along && host > own) move(host - 1, host, bytes.running);
    }
    if (detours.before && bytes.continues) move(own, 0, bytes.sum);
    if (detours.behind) move(num_hosts - 1, own, bytes.sum);
  }
  int64_t most = 0;
  for (size_t host = 0; host < num_hosts; ++host) {
    most = std::max({most, sent[host], received[host]});
  }
  return most;
}

}  // namespace

SumBytes SumBytesOf(ReductionTypes types, bool continues) {
  const int64_t term = SizeOf(types.terms);
  return {term, term == 2 ? SizeOf(DType::kF32) : term, SizeOf(types.sum), continues};
}

std::vector<SumStop> SumRoute(const std::vector<int>& hosts, int owner, const SumBytes& bytes) {
  const int num_ranks = static_cast<int>(hosts.size());
  const std::vector<Neighbours> in_order = HostsInOrder(hosts);
  if (in_order.size() <= 1) return {{owner, 0, num_ranks}};
  size_t own = 0;
  while (in_order[own].end <= owner) ++own;
  const Neighbours& around = in_order[own];
  const Detours detours = DetoursFor(in_order, own, bytes);
  // On every host another rank for each of the owner's neighbours.
  const auto stop_on = [&](const Neighbours& host) -> SumStop {
    return {host.begin + (owner - around.begin) % host.size(), host.begin, host.end};
  };
  std::vector<SumStop> stops;
  for (size_t host = 0; detours.before && host < own; ++host) {
    stops.push_back(stop_on(in_order[host]));
  }
  stops.push_back(
      {owner, detours.before ? around.begin : 0, detours.behind ? around.end : num_ranks});
  for (size_t host = own + 1; detours.behind && host < in_order.size(); ++host) {
    stops.push_back(stop_on(in_order[host]));
  }
  return stops;
}

int64_t MostBytesBetweenHosts(const std::vector<int>& hosts, const SumBytes& bytes) {
  const std::vector<Neighbours> in_order = HostsInOrder(hosts);
  return std::min(MostBytes(in_order, bytes, false), MostBytes(in_order, bytes, true));
}

bool LessensBytesBetweenHosts(const std::vector<int>& hosts, const SumBytes& bytes) {
  const std::vector<Neighbours> in_order = HostsInOrder(hosts);
  return MostBytes(in_order, bytes, true) < MostBytes(in_order, bytes, false);
}

bool MayGoAlongHosts(ReductionTypes types, int64_t part_elements) {
  return types.order == FoldOrder::kLeft && part_elements * SizeOf(types.terms) >= kMinPartBytes;
}

}  // namespace zg
