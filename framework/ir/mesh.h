// Mesh: the ranks of a job as a grid with named axes, `data=4` or `data=2,tensor=2`; the last axis
// varies fastest.
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
  std::string ToString() const;                 // "data=2,tensor=2"

 private:
  std::vector<MeshAxis> axes_;
};

NdSbp AllBroadcast(const Mesh& mesh);

// The part of a value of shape `logical` that one rank holds. Split dims must divide evenly
// (verified by the verifier); an empty `sbp` means that placement is not inferred yet, and gives
// `logical`.
Shape LocalShape(const Shape& logical, const NdSbp& sbp, const Mesh& mesh);

}  // namespace zg
