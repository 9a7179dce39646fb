// The boxing table: which op changes a placement along one mesh axis. PlacementChangeBytes
// (ir/placement.h) gives the cost.
//
//   from -> to       op
//   same             none
//   P    -> B        all_reduce
//   P    -> S(i)     reduce_scatter
//   S(i) -> B        all_gather
//   S(i) -> S(j)     all_to_all
//   B    -> S(i)     local_slice
//   B    -> P        local_term
//   S(i) -> P        local_term
#pragma once

#include "framework/ir/graph.h"

namespace zg {

struct Boxing {
  std::string op;             // empty if there is nothing to do
  ir::Attributes attributes;  // besides the axis
};

// Neither placement may be a split in groups: each group of these is moved by itself.
Boxing FindBoxing(Sbp from, Sbp to);

}  // namespace zg
