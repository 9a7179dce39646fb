// Initializer: how a variable's elements are initialised. Random ones are keyed by (seed, tensor
// name, element index); those of a file are read when the variable gets its memory.
#pragma once

#include <string>
#include <utility>

namespace zg {

struct Initializer {
  enum class Kind {
    kZeros,
    kOnes,
    kConstant,         // scale
    kNormal,           // mean 0 and standard deviation scale
    kTruncatedNormal,  // likewise, redrawn beyond [-bound, bound]
    kUniform,          // in [-scale, scale)
    kOrthogonal,       // scale times orthonormal rows, or columns where these are fewer
    kFile,             // tensor `tensor` of the file `path`
  };
  Kind kind = Kind::kZeros;
  double scale = 0.0;
  double bound = 0.0;
  std::string path = {};
  std::string tensor = {};  // empty: the variable's own name

  static Initializer Zeros() { return {}; }
  static Initializer Ones() { return {Kind::kOnes}; }
  static Initializer Constant(double value) { return {Kind::kConstant, value}; }
  static Initializer Normal(double standard_deviation) {
    return {Kind::kNormal, standard_deviation};
  }
  static Initializer TruncatedNormal(double standard_deviation, double bound) {
    return {Kind::kTruncatedNormal, standard_deviation, bound};
  }
  static Initializer Uniform(double bound) { return {Kind::kUniform, bound}; }
  // Orthogonality of a tensor as a matrix: dim 0 by the other dims. Every rank computes the whole
  // matrix.
  static Initializer Orthogonal(double gain = 1.0) { return {Kind::kOrthogonal, gain}; }
  // The values of a tensor of this shape in a safetensors file in F32, F16 or BF16; of the
  // variable's own name unless another is given. Every rank reads its part from the file.
  static Initializer FromFile(std::string path, std::string tensor = "") {
    return {Kind::kFile, 0.0, 0.0, std::move(path), std::move(tensor)};
  }

  std::string ToString() const;  // "zeros", "normal(0.02)", "file("vectors.safetensors","table")"
  friend bool operator==(const Initializer& a, const Initializer& b) {
    return a.kind == b.kind && a.scale == b.scale && a.bound == b.bound && a.path == b.path &&
           a.tensor == b.tensor;
  }
};

}  // namespace zg
