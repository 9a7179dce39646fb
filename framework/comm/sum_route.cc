#include "framework/comm/sum_route.h"

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

// The hosts in the order of the additions; empty if the ranks of one of them do not follow each other.
std::vector<Neighbours> HostsInOrder(const std::vector<int>& hosts) {
  std::vector<Neighbours> in_order;
  for (int position = 0; position < static_cast<int>(hosts.size()); ++position) {
    const int host = hosts[position];
    if (!in_order.empty() && hosts[in_order.back().begin] == host) {
      in_order.back().end = position + 1;
      continue;
    }
    for (const Neighbours& before : in_order) {
      if (hosts[before.begin] == host) return {};
    }
    in_order.push_back({position, position + 1});
  }
  return in_order;
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
  const auto num_before = static_cast<int64_t>(own);
  const int64_t num_behind = static_cast<int64_t>(in_order.size()) - 1 - num_before;

  const bool come_along = num_before * bytes.running + (bytes.continues ? bytes.sum : 0) <
                          around.begin * bytes.term;
  const bool go_along =
      num_behind * bytes.running + bytes.sum < (num_ranks - around.end) * bytes.term;
  // On every host another rank for each of the owner's neighbours.
  const auto stop_on = [&](const Neighbours& host) -> SumStop {
    return {host.begin + (owner - around.begin) % host.size(), host.begin, host.end};
  };
  std::vector<SumStop> stops;
  for (size_t host = 0; come_along && host < own; ++host) stops.push_back(stop_on(in_order[host]));
  stops.push_back({owner, come_along ? around.begin : 0, go_along ? around.end : num_ranks});
  for (size_t host = own + 1; go_along && host < in_order.size(); ++host) {
    stops.push_back(stop_on(in_order[host]));
  }
  return stops;
}

bool MayGoAlongHosts(ReductionTypes types, int64_t part_elements) {
  return types.order == FoldOrder::kLeft && part_elements * SizeOf(types.terms) >= kMinPartBytes;
}

}  // namespace zg
