// Tensor: a value that is there: what functions and modules give while an Eager exists (eager.h). A
// Var, so that all functions of Vars take it, and any of their results is one:
//   zg::Tensor y = zg::relu(x) * 2.0;
// A handle: copies share the value.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/nn/var.h"

namespace zg {

class Tensor : public Var {
 public:
  Tensor() = default;  // empty
  // A result of a function that ran at once. Of one that is being traced: an error when it is read.
  Tensor(Var var) : Var(std::move(var)) {}  // NOLINT: implicit

  // The elements, row-major: of floating-point tensors as f32, of i64 and bool.
  std::vector<float> values() const;
  std::vector<int64_t> integers() const;
  float item() const;  // of the only element

  // Gradients of this f32 scalar: of every trainable parameter, and of every tensor that asked by
  // require_grad(), that it was computed from. They are added to what grad() was before.
  void backward() const;
  // Of what is computed from this tensor from now on, backward() gives it a gradient.
  void require_grad() const;
  Tensor grad() const;  // empty before backward()

  // Shape, dtype, and the elements, of large tensors the first and last along each dim:
  //   f32[2,3]
  //   [[ 1.0000,  2.5000, -0.3000],
  //    [ 0.0000,  1.0000,  4.0000]]
  std::string to_string() const;
};

}  // namespace zg
