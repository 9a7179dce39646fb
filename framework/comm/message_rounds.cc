#include "framework/comm/message_rounds.h"

#include <cstddef>
#include <map>

namespace zg {
namespace {

// The ranks of each host, in ascending order.
std::map<int, std::vector<int>> RanksByHost(const std::vector<int>& hosts) {
  std::map<int, std::vector<int>> by_host;
  for (size_t rank = 0; rank < hosts.size(); ++rank) {
    by_host[hosts[rank]].push_back(static_cast<int>(rank));
  }
  return by_host;
}

bool HaveNeighboursElsewhere(const std::map<int, std::vector<int>>& by_host) {
  const size_t of_each = by_host.begin()->second.size();
  for (const auto& [host, ranks] : by_host) {
    if (ranks.size() != of_each) return false;
  }
  return by_host.size() > 1 && of_each > 1;
}

// Every rank's own part to everybody.
MessageRound DirectRound(int num_ranks, int rank) {
  MessageRound round = AllToAllRound(num_ranks, rank);
  for (PartMessage& message : round.sent) message.part = rank;
  return round;
}

int IndexOf(const std::vector<int>& ranks, int rank) {
  int index = 0;
  while (ranks[index] != rank) ++index;
  return index;
}

}  // namespace

// In an order in which no two ranks send to the same one at once.
MessageRound AllToAllRound(int num_ranks, int rank) {
  MessageRound round;
  for (int i = 1; i < num_ranks; ++i) {
    const int to = (rank + i) % num_ranks;
    const int from = (rank + num_ranks - i) % num_ranks;
    round.sent.push_back({to, to});
    round.received.push_back({from, from});
  }
  return round;
}

std::vector<MessageRound> GatherRounds(const std::vector<int>& hosts, int rank) {
  const std::map<int, std::vector<int>> by_host = RanksByHost(hosts);
  if (!HaveNeighboursElsewhere(by_host)) {
    return {DirectRound(static_cast<int>(hosts.size()), rank)};
  }
  const std::vector<int>& neighbours = by_host.at(hosts[rank]);
  const int own_index = IndexOf(neighbours, rank);
  MessageRound own_parts;
  MessageRound passed_on;
  for (const auto& [host, ranks] : by_host) {
    if (host == hosts[rank]) continue;
    own_parts.sent.push_back({ranks[own_index], rank});
    own_parts.received.push_back({ranks[own_index], ranks[own_index]});
  }
  for (size_t index = 0; index < neighbours.size(); ++index) {
    const int neighbour = neighbours[index];
    if (neighbour == rank) continue;
    own_parts.sent.push_back({neighbour, rank});
    own_parts.received.push_back({neighbour, neighbour});
    for (const auto& [host, ranks] : by_host) {
      if (host == hosts[rank]) continue;
      passed_on.sent.push_back({neighbour, ranks[own_index]});
      passed_on.received.push_back({neighbour, ranks[index]});
    }
  }
  return {own_parts, passed_on};
}

}  // namespace zg
