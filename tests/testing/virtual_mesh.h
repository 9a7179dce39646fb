// VirtualMesh: the ranks that a graph runs on in a test, and their parts of a logical value that is
// placed on all axes of the graph's mesh (virtual_ranks.h cuts along one). A graph without
// placements runs on one rank.
#pragma once

#include <vector>

#include "framework/base/random.h"
#include "framework/base/status.h"
#include "framework/ir/graph.h"
#include "tests/testing/heap_tensor.h"

namespace zg::testing {

using Parts = std::vector<HeapTensor>;  // by rank

// Whether any value has a placement.
bool IsPlaced(const ir::Graph& graph);

HeapTensor Zeros(const TensorType& type);

// ((start + terms[0]) + terms[1]) + ..., without `start` if it is null; 16-bit terms in f32.
HeapTensor Fold(const HeapTensor* start, const Parts& terms, DType dtype);

// A term that changes no sum, not even the sign of its zero.
HeapTensor NoTerm(const TensorType& type);

class VirtualMesh {
 public:
  explicit VirtualMesh(const ir::Graph& graph);

  bool is_placed() const { return is_placed_; }
  int num_ranks() const { return is_placed_ ? mesh_.num_ranks() : 1; }

  // The axis "data", -1 if there is none.
  int data_axis() const { return data_axis_; }
  int data_ranks() const { return data_axis_ < 0 ? 1 : mesh_.axes()[data_axis_].size; }
  int DataCoordinate(int rank) const;
  Sbp AlongData(const NdSbp& sbp) const;  // B if there is none
  // The micro-batch of a rank in its micro-step; without placements the micro-steps are the
  // micro-batches.
  int64_t MicroBatch(int rank, int64_t micro_step) const;

  // The ranks that differ from `rank` only along `axis`, including itself, in ascending order.
  std::vector<int> RanksAlong(int rank, int axis) const { return mesh_.RanksAlong(rank, {axis}); }

  // The parts of a logical value on the ranks. The terms of a partial value are random, and add up
  // to it.
  Parts Cut(const HeapTensor& logical, const NdSbp& sbp, RandomKey key) const;

  // The parts of the same value under another placement. Errors: ranks that hold different values
  // of a broadcast value; a dim that does not divide.
  StatusOr<Parts> ChangePlacement(Parts parts, const NdSbp& from, const NdSbp& to) const;

  // The whole value. Errors: as above.
  StatusOr<HeapTensor> Logical(const ir::Value& value, const Parts& parts) const;

  // The same for each data rank: its part of the value along the axis "data", in their order.
  StatusOr<Parts> PartsAlongData(const ir::Value& value, const Parts& parts) const;

  // Error unless all ranks hold the same where the value is whole on each.
  Status CheckSame(const ir::Value& value, const Parts& parts) const;

 private:
  template <typename F>
  StatusOr<Parts> AlongAxis(const Parts& parts, int axis, const F& f) const;

  const Mesh& mesh_;
  const bool is_placed_;
  const int data_axis_;
};

}  // namespace zg::testing
