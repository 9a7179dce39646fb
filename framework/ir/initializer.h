// Initializer: how a variable's elements get their first values. Random ones are keyed by (seed,
// tensor name, element index).
#pragma once

#include <string>

namespace zg {

struct Initializer {
  enum class Kind { kZeros, kOnes, kNormal, kUniform };
  Kind kind = Kind::kZeros;
  double scale = 0.0;  // kNormal: standard deviation, mean 0; kUniform: values in [-scale, scale)

  static Initializer Zeros() { return {}; }
  static Initializer Ones() { return {Kind::kOnes, 0.0}; }
  static Initializer Normal(double standard_deviation) {
    return {Kind::kNormal, standard_deviation};
  }
  static Initializer Uniform(double bound) { return {Kind::kUniform, bound}; }
  std::string ToString() const;  // "zeros", "normal(0.02)"
  friend bool operator==(const Initializer& a, const Initializer& b) {
    return a.kind == b.kind && a.scale == b.scale;
  }
};

}  // namespace zg
