// TensorType: dtype and shape of a tensor, "f32[20,2000]".
#pragma once

#include <cstdint>
#include <string>

#include "framework/tensor/dtype.h"
#include "framework/tensor/shape.h"

namespace zg {

struct TensorType {
  DType dtype = DType::kF32;
  Shape shape;
  int64_t bytes() const { return shape.num_elements() * SizeOf(dtype); }
  std::string ToString() const;  // "f32[20,2000]"
  friend bool operator==(const TensorType& a, const TensorType& b) {
    return a.dtype == b.dtype && a.shape == b.shape;
  }
  friend bool operator!=(const TensorType& a, const TensorType& b) { return !(a == b); }
};

}  // namespace zg
