// Mesh: the ranks of a job as a grid with named axes, `data=4` or `data=2,tensor=2`; the last axis
// varies fastest.
//
// What an axis is for follows from its name:
//   data, shard    Ranks along it compute different micro-batches. ZeRO shards over it.
//   replica        Ranks along it compute different micro-batches. ZeRO keeps whole copies along
//   it:
//                  `replica=2,shard=4` is hybrid sharding.
//   another name   Ranks along it work on the same micro-batches (`tensor`). Such axes come last.
// Micro-batch j * num_data_ranks() + DataIndex(rank) is the j-th of a rank.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/ir/sbp.h"
#include "framework/tensor/shape.h"

namespace zg {

struct MeshAxis {
  std::string name;
  int size = 1;
};

class Mesh {
 public:
  Mesh() = default;
  explicit Mesh(std::vector<MeshAxis> axes) : axes_(std::move(axes)) {}
  static Mesh DataParallel(int num_ranks) { return Mesh({{"data", num_ranks}}); }

  const std::vector<MeshAxis>& axes() const { return axes_; }
  int num_axes() const { return static_cast<int>(axes_.size()); }
  int num_ranks() const;
  int Coordinate(int rank, int axis) const;     // of `rank` along `axis`
  int FindAxis(const std::string& name) const;  // -1 when there is none

  // The axes along which ranks compute different micro-batches, and those of them over which ZeRO
  // shards; in ascending order. Axes of one rank are left out.
  std::vector<int> DataAxes() const;
  std::vector<int> ShardAxes() const;
  bool IsDataAxis(int axis) const;
  bool ShardsOver(int axis) const;  // whether ZeRO does, by its name
  int num_data_ranks() const;       // the product of the data axes
  int DataIndex(int rank) const;    // of `rank` among the data ranks: over all data axes together

  // The ranks that differ from `rank` only along these axes, itself among them; the last axis of
  // the list varies fastest.
  std::vector<int> RanksAlong(int rank, const std::vector<int>& axes) const;

  std::string ToString() const;  // "data=2,tensor=2"

 private:
  std::vector<MeshAxis> axes_;
};

NdSbp AllBroadcast(const Mesh& mesh);

// Which part of a value split along one dim a rank holds: the part-th of num_parts, and which copy
// of that part, of num_copies.
struct ShardPosition {
  int64_t part = 0;
  int64_t num_parts = 1;
  int64_t copy = 0;
  int64_t num_copies = 1;
};
// Axes that split another dim are left out.
ShardPosition ShardPositionOf(const Mesh& mesh, const NdSbp& sbp, int rank, int dim = 0);

// The part of a value of shape `logical` that one rank holds. Split dims must divide evenly
// (verified by the verifier); an empty `sbp` means that placement is not inferred yet, and gives
// `logical`.
Shape LocalShape(const Shape& logical, const NdSbp& sbp, const Mesh& mesh);

}  // namespace zg
