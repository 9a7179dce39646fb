// Initializer: how a variable's elements are initialised. Random ones are keyed by (seed, tensor
// name, element index).
#pragma once

#include <string>

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
  };
  Kind kind = Kind::kZeros;
  double scale = 0.0;
  double bound = 0.0;

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
  std::string ToString() const;  // "zeros", "normal(0.02)"
  friend bool operator==(const Initializer& a, const Initializer& b) {
    return a.kind == b.kind && a.scale == b.scale && a.bound == b.bound;
  }
};

}  // namespace zg
