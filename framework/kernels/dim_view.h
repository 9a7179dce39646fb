// Helpers of kernels that rearrange elements: elements as raw bytes of their size, and a shape as
// the dims before, at and after one of its dims.
#pragma once

#include <cstdint>

#include "framework/tensor/shape.h"

namespace zg {

// Calls f(zero) with an unsigned integer of the elements' size.
template <typename F>
decltype(auto) WithElements(int64_t bytes, const F& f) {
  switch (bytes) {
    case 1:
      return f(uint8_t{0});
    case 2:
      return f(uint16_t{0});
    case 4:
      return f(uint32_t{0});
    default:
      return f(uint64_t{0});
  }
}

// x[outer, size, inner].
struct DimView {
  DimView(const Shape& shape, int64_t dim) {
    for (int i = 0; i < shape.num_dims(); ++i) {
      (i < dim ? outer : i == dim ? size : inner) *= shape.dim(i);
    }
  }
  int64_t outer = 1;
  int64_t size = 1;
  int64_t inner = 1;
};

}  // namespace zg
