// Initializer: how a variable's elements are initialised. Random ones are keyed by (seed, tensor
// name, element index); those of a file are read when the variable gets its memory.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace zg {

struct Initializer {
  enum class Kind {
    kZeros,
    kOnes,
    kConstant,         // scale
    kRow,              // `row` along the last dim, the same everywhere
    kNormal,           // of the mean `mean` and standard deviation `scale`
    kTruncatedNormal,  // likewise with mean 0, redrawn beyond [-bound, bound]
    kUniform,          // in [mean - scale, mean + scale)
    kOrthogonal,       // scale times orthonormal rows, or columns where these are fewer
    kFile,             // tensor `tensor` of the file `path`
  };
  Kind kind = Kind::kZeros;
  double scale = 0.0;
  double bound = 0.0;
  double mean = 0.0;
  std::vector<double> row = {};
  std::string path = {};
  std::string tensor = {};  // empty: the variable's own name
  int64_t zero_row = -1;    // along dim 0: its elements are zeros all the same; -1: none

  static Initializer Zeros() { return {}; }
  static Initializer Ones() { return {Kind::kOnes}; }
  static Initializer Constant(double value) { return {Kind::kConstant, value}; }
  // Along the last dim, whose size must be that of `row`.
  static Initializer Row(std::vector<double> row) {
    Initializer initializer = {Kind::kRow};
    initializer.row = std::move(row);
    return initializer;
  }
  static Initializer Normal(double standard_deviation, double mean = 0.0) {
    return {Kind::kNormal, standard_deviation, 0.0, mean};
  }
  static Initializer TruncatedNormal(double standard_deviation, double bound) {
    return {Kind::kTruncatedNormal, standard_deviation, bound};
  }
  static Initializer Uniform(double bound) { return {Kind::kUniform, bound}; }  // [-bound, bound)
  static Initializer Uniform(double low, double high) {
    return {Kind::kUniform, (high - low) / 2, 0.0, (high + low) / 2};
  }
  // Orthogonality of a tensor as a matrix: dim 0 by the other dims. Every rank computes the whole
  // matrix.
  static Initializer Orthogonal(double gain = 1.0) { return {Kind::kOrthogonal, gain}; }
  // The values of a tensor of this shape in a safetensors file in F32, F16 or BF16; of the
  // variable's own name unless another is given. Every rank reads its part from the file.
  static Initializer FromFile(std::string path, std::string tensor = "") {
    Initializer initializer = {Kind::kFile};
    initializer.path = std::move(path);
    initializer.tensor = std::move(tensor);
    return initializer;
  }

  // The same, but zeros in one row of dim 0, such as that of padding.
  Initializer WithZeroRow(int64_t row) const {
    Initializer initializer = *this;
    initializer.zero_row = row;
    return initializer;
  }

  std::string ToString() const;  // "zeros", "normal(0.02)", "file("vectors.safetensors","table")"
  friend bool operator==(const Initializer& a, const Initializer& b) {
    return a.kind == b.kind && a.scale == b.scale && a.bound == b.bound && a.mean == b.mean &&
           a.row == b.row && a.path == b.path && a.tensor == b.tensor && a.zero_row == b.zero_row;
  }
};

}  // namespace zg
