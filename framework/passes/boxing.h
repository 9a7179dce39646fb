// The boxing table: what a change of placement along one mesh axis costs and which op makes it.
//
//   from -> to       op              bytes sent per rank, of T logical bytes on n ranks
//   same             none            0
//   P    -> B        all_reduce      2 T (n-1)/n
//   P    -> S(i)     reduce_scatter  T (n-1)/n
//   S(i) -> B        all_gather      T (n-1)/n
//   S(i) -> S(j)     all_to_all      T/n (n-1)/n
//   B    -> S(i)     local_slice     0
//   B    -> P        local_term      0
//   S(i) -> P        local_term      0
#pragma once

#include <cstdint>

#include "framework/ir/graph.h"

namespace zg {

struct Boxing {
  std::string op;             // empty when nothing is to do
  ir::Attributes attributes;  // besides the axis
  double bytes_sent = 0;      // per rank
};

Boxing FindBoxing(Sbp from, Sbp to, int64_t logical_bytes, int num_ranks);

}  // namespace zg
