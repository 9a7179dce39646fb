// Mesh: the ranks of a job as a grid with named axes, `data=4` or `data=2,tensor=2`; the last axis
// varies fastest.
//
// The name of an axis decides its purpose:
//   data, shard    Ranks along it compute different micro-batches. ZeRO shards over it.
//   replica        Ranks along it compute different micro-batches. ZeRO keeps whole copies along it:
//                  `replica=2,shard=4` is hybrid sharding.
//   another name   Ranks along it work on the same micro-batches (`tensor`). Such axes come last.
//                  `tensor=2/4`: its 2 ranks compute 4 parts, 2 each, as 4 ranks would, and add terms
//                  pairwise. The bits depend on the number of parts, and not on that of ranks.
// The j-th micro-batch of a rank is j * num_data_ranks() + DataIndex(rank).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/base/status.h"
#include "framework/ir/sbp.h"
#include "framework/tensor/shape.h"

namespace zg {

struct MeshAxis {
  std::string name;
  int size = 1;   // ranks
  int parts = 0;  // if it is not 0: `size` times a power of two

  bool has_fixed_parts() const { return parts > 0; }
  // The parts in which values are computed along an axis whose ranks share micro-batches.
  int num_parts() const { return has_fixed_parts() ? parts : size; }
  std::string ToString() const;  // "tensor=2/4"
};

// Errors: parts of an axis of data ranks; another number of them than `size` times a power of two.
Status CheckParts(const MeshAxis& axis);

class Mesh {
 public:
  Mesh() = default;
  explicit Mesh(std::vector<MeshAxis> axes) : axes_(std::move(axes)) {}
  static Mesh DataParallel(int num_ranks) { return Mesh({{"data", num_ranks}}); }

  const std::vector<MeshAxis>& axes() const { return axes_; }
  int num_axes() const { return static_cast<int>(axes_.size()); }
  int num_ranks() const;
  int Coordinate(int rank, int axis) const;     // of `rank` along `axis`
  int FindAxis(const std::string& name) const;  // -1 if there is none

  // The axes along which ranks compute different micro-batches, and the subset of them that ZeRO
  // shards over, in ascending order. Axes of one rank are left out.
  std::vector<int> DataAxes() const;
  std::vector<int> ShardAxes() const;
  bool IsDataAxis(int axis) const;
  bool ShardsOver(int axis) const;  // whether ZeRO shards over the axis, by its name
  int num_data_ranks() const;       // the product of the data axes
  int DataIndex(int rank) const;    // index of `rank` among the data ranks, over all data axes
                                    // together

  // The ranks that differ from `rank` only along these axes, including itself; the last axis of the
  // list varies fastest.
  std::vector<int> RanksAlong(int rank, const std::vector<int>& axes) const;

  std::string ToString() const;  // "data=2,tensor=2"

 private:
  std::vector<MeshAxis> axes_;
};

NdSbp AllBroadcast(const Mesh& mesh);

// The part that a rank holds of a value split along one dim: part `part` of num_parts, and which of
// the num_copies copies of it.
struct ShardPosition {
  int64_t part = 0;
  int64_t num_parts = 1;
  int64_t copy = 0;
  int64_t num_copies = 1;
};
// Ignores axes that split another dim.
ShardPosition ShardPositionOf(const Mesh& mesh, const NdSbp& sbp, int rank, int dim = 0);

// The shape of the part of a value that one rank holds. Split dims must divide evenly (the verifier
// checks that). An empty `sbp` means that placements are not inferred yet, and gives `logical`.
Shape LocalShape(const Shape& logical, const NdSbp& sbp, const Mesh& mesh);

}  // namespace zg
