// Message rounds: which parts the ranks of a group send each other by messages, for collectives that
// add nothing.
#pragma once

#include <vector>

namespace zg {

// A part that is sent to or received from a peer. Both are ranks in the group, and part p is that of
// rank p.
struct PartMessage {
  int peer = 0;
  int part = 0;
};

// Messages between the same two ranks are in the same order on both sides.
struct MessageRound {
  std::vector<PartMessage> sent;
  std::vector<PartMessage> received;
};

// The rounds of `rank` in an all-gather. If the ranks are on several hosts, equally many on each, a
// part goes to one rank of every other host, which passes it on to its neighbours: it crosses between
// two hosts once, instead of once for each rank there. Every rank receives each part of another rank
// exactly once either way. A round sends the rank's own part, or parts received in a round before.
// `hosts[r]` is the host of rank r: any number, the same for ranks on one host.
std::vector<MessageRound> GatherRounds(const std::vector<int>& hosts, int rank);

// The round of `rank` in an all-to-all: every peer is sent its part, and sends this rank's, which is
// received as the part with the peer's number.
MessageRound AllToAllRound(int num_ranks, int rank);

}  // namespace zg
