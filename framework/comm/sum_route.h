// SumRoute: on which ranks the terms of one part of a sum are added, when ranks that exchange
// messages are on several hosts. The order of the additions is that of Group, ((g0 + g1) + g2) + ...,
// on every route, so the bits are the same.
//
//   direct: every rank sends its term to the owner of the part.
//   along the hosts: on each host one rank adds the terms of its neighbours to the sum that comes from
//     the host before, and passes it on. A sum crosses between two hosts instead of a term from each
//     rank there.
//
//       host 0               host 1               host 2
//       g0 + g1 + g2   -->   .. + g3 + g4 + g5 --> .. + g6 + g7 + g8, the owner's
//
// The hosts before the owner's and those behind it may be treated differently. If the owner is not on
// the last host of its route, the sum comes back to it.
#pragma once

#include <cstdint>
#include <vector>

#include "framework/comm/reduction_types.h"

namespace zg {

// The bytes that an element takes in messages of a sum.
struct SumBytes {
  int64_t term = 4;
  int64_t running = 4;     // of a sum that is not complete: f32 for 16-bit terms
  int64_t sum = 4;         // of the complete sum, and of one that is continued
  bool continues = false;  // the owner's sum is continued
};
SumBytes SumBytesOf(ReductionTypes types, bool continues);

// A rank that adds terms to the sum of the stop before it. Terms and ranks are positions in the order
// of the additions.
struct SumStop {
  int rank = 0;
  int first_term = 0;
  int end_term = 0;
};

// The stops of the part that `owner` gets, in the order of the additions; the last one has the complete
// sum. `hosts[p]` is the host of the rank at position p: any number, the same for ranks on one host.
// Of routes with equally many bytes between hosts it is the most direct one. Ranks of a host that do
// not follow each other count as ranks of different hosts.
std::vector<SumStop> SumRoute(const std::vector<int>& hosts, int owner, const SumBytes& bytes);

// The most bytes per element of a part that the ranks of one host send to other hosts, or receive from
// them, in the sums of all parts: directly or on these routes, whichever is less.
int64_t MostBytesBetweenHosts(const std::vector<int>& hosts, const SumBytes& bytes);

// Whether these routes are less. Otherwise all sums go directly, with fewer messages that wait for
// each other.
bool LessensBytesBetweenHosts(const std::vector<int>& hosts, const SumBytes& bytes);

// Whether sums go along hosts at all: a small part goes directly, because then the number of messages
// that wait for each other counts. `part_elements` are those of the largest part.
bool MayGoAlongHosts(ReductionTypes types, int64_t part_elements);

}  // namespace zg
