// Group: the collectives of the ranks along one or several axes of the mesh. They work on the
// arena.
//
//   ZG_ASSIGN_OR_RETURN(Group* group, communicator.GroupOf(mesh.RanksAlong(rank, {axis})));
//   ZG_RETURN_IF_ERROR(group->AllGather("weights", part, whole, part_bytes));
//
// Parts are ordered by rank in the group. Sums over ranks are left folds in the order of the ranks
// in the job, ((g0 + g1) + g2) + ..., whatever the transport, the arrival order and the order in
// which the group lists its ranks: the bits are the same on every path. Ranks in host memory also
// add pairwise (FoldOrder).
//
// Two or more data axes: a sum over them is one collective of a group that lists the ranks along
// all of them, not one collective per axis. Inner sums added by an outer one would be (g0 + g1) +
// (g2 + g3), with other bits than those of four ranks on one axis. Where ranks read each other's
// memory, the owner of a part folds straight out of everybody's. A reduce-scatter over the joint
// group and an all-gather along the axes that keep whole copies (kernels of reduce_scatter in
// runtime/boxing) move T (N-1)/N + T/s (r-1)/r bytes per rank, for N = s * r ranks that split T bytes
// s times and copy them r times. A hierarchical reduction, T (s-1)/s + 2 T/s (r-1)/r, moves as many.
// With messages between hosts of s ranks, a sum goes from host to host, each of which adds its terms
// (sum_route.h): T/s bytes of sums per rank leave the busiest host, and T/s (r-1)/r for the copies.
//
// Every rank of the group must call the same collectives in the same order. A different call, or a
// rank that does not arrive before the deadline, is an error that names the collective and the
// ranks. After an error of a collective the job's groups must not be used any more.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "framework/base/status.h"
#include "framework/comm/arena.h"
#include "framework/comm/reduction_types.h"
#include "framework/comm/traffic.h"

namespace zg {

// The positions of a group's ranks in the order in which their terms are added.
std::vector<int> InFoldOrder(const std::vector<int>& ranks);

class Group {
 public:
  virtual ~Group() = default;

  int rank() const { return rank_; }  // in the group
  int size() const { return static_cast<int>(ranks_.size()); }
  const std::vector<int>& ranks() const { return ranks_; }  // in the job, by rank in the group

  // `input` has `elements` (a multiple of size()) on every rank; rank r receives the sum of every
  // rank's r-th part in `output`. With `accumulate` the fold starts from the value of `output` (not
  // with a 16-bit sum). `output` may be the rank's own part of `input` (in place, without
  // `accumulate`), otherwise they must not overlap.
  virtual Status ReduceScatter(std::string_view name, ArenaOperand input, ArenaOperand output,
                               int64_t elements, ReductionTypes types, bool accumulate) = 0;

  // Every rank receives all ranks' `input` parts, `part_bytes` each, side by side in rank order in
  // `output`. `input` may be the rank's own part of `output` (in place), otherwise they must not
  // overlap.
  virtual Status AllGather(std::string_view name, ArenaOperand input, ArenaOperand output,
                           int64_t part_bytes) = 0;

  // Every rank receives the sum of `input` in `output` (any number of elements). In place or not
  // overlapping. With `accumulate` the fold starts from the value of `output` (equal on all ranks);
  // then it must not be in place.
  virtual Status AllReduce(std::string_view name, ArenaOperand input, ArenaOperand output,
                           int64_t elements, ReductionTypes types, bool accumulate) = 0;

  // Part p of rank r's `input` becomes part r of rank p's `output`; `part_bytes` each. Not
  // overlapping.
  virtual Status AllToAll(std::string_view name, ArenaOperand input, ArenaOperand output,
                          int64_t part_bytes) = 0;

 protected:
  // `ranks` are distinct and contain the rank of this process, `job_rank`. `traffic` belongs to the
  // rank and must outlive the group.
  Group(std::vector<int> ranks, int job_rank, TrafficMeter* traffic);

  // The group's ranks in the order in which their terms are added, and the inverse.
  const std::vector<int>& fold_order() const { return fold_order_; }
  int FoldPosition(int rank) const { return fold_position_[rank]; }

  TrafficMeter& traffic() const { return *traffic_; }

 private:
  const std::vector<int> ranks_;
  int rank_ = 0;
  std::vector<int> fold_order_;
  std::vector<int> fold_position_;
  TrafficMeter* traffic_;
};

}  // namespace zg
