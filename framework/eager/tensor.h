// Tensor: an eager value, the result of functions and modules while an Eager exists (eager.h). It
// is a Var, so all functions of Vars accept it, and any of their results can be assigned to it:
//   zg::Tensor y = zg::relu(x) * 2.0;
// A Tensor is a handle: copies share the value.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/nn/var.h"

namespace zg {

class Tensor : public Var {
 public:
  Tensor() = default;  // empty
  // The result of an eager function. If the Var is being traced, reading the Tensor is an error.
  Tensor(Var var) : Var(std::move(var)) {}  // NOLINT: implicit

  // The elements, row-major: values() of floating-point tensors, as f32; integers() of i64 and bool.
  std::vector<float> values() const;
  std::vector<int64_t> integers() const;
  float item() const;  // the only element

  // Computes the gradients of this f32 scalar for every trainable parameter, and for every tensor
  // marked by require_grad(), that it was computed from. They are added to the previous grad().
  void backward() const;
  // Makes backward() of anything that is computed from this tensor from now on give it a gradient.
  void require_grad() const;
  Tensor grad() const;  // empty before backward()

  // Shape, dtype and the elements; for large tensors only the first and last along each dim:
  //   f32[2,3]
  //   [[ 1.0000,  2.5000, -0.3000],
  //    [ 0.0000,  1.0000,  4.0000]]
  std::string to_string() const;
};

}  // namespace zg
