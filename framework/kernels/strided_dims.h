// The layout of operands whose elements are broadcast to, or taken for, one result: a loop nest
// over the result with the stride of every operand. Kernels of all devices use it.
#pragma once

#include <cstdint>

#include "framework/base/host_device.h"
#include "framework/tensor/shape.h"

namespace zg {

// kOperands operands; outermost dim first. Neighbouring dims in which all operands are contiguous
// are merged, so elementwise tensors have one dim.
template <int kOperands>
struct StridedDims {
  int num_dims = 0;  // at least 1
  int64_t sizes[Shape::kMaxDims] = {};
  int64_t strides[kOperands][Shape::kMaxDims] = {};  // elements; 0: repeated

  // The operand's offset for the element of the result at `index`.
  ZG_HOST_DEVICE ZG_INLINE int64_t OffsetOf(int operand, int64_t index) const {
    int64_t offset = 0;
    for (int dim = num_dims; dim-- > 0;) {
      const int64_t rest = index / sizes[dim];
      offset += (index - rest * sizes[dim]) * strides[operand][dim];
      index = rest;
    }
    return offset;
  }

  // Adds a dim inside the existing ones; merges it with the last one if possible.
  void Add(int64_t size, const int64_t (&steps)[kOperands]) {
    if (size == 1) return;
    bool continues = num_dims > 0;
    for (int i = 0; i < kOperands && continues; ++i) {
      continues = strides[i][num_dims - 1] == steps[i] * size;
    }
    if (!continues) ++num_dims;
    const int dim = num_dims - 1;
    sizes[dim] = continues ? sizes[dim] * size : size;
    for (int i = 0; i < kOperands; ++i) strides[i][dim] = steps[i];
  }
  // One operand alone, whose dims are merged where it is contiguous.
  StridedDims<1> Of(int operand) const {
    StridedDims<1> own;
    for (int dim = 0; dim < num_dims; ++dim) own.Add(sizes[dim], {strides[operand][dim]});
    own.Finish();
    return own;
  }
  void Finish() {
    if (num_dims > 0) return;
    num_dims = 1;
    sizes[0] = 1;
  }
};

// For contiguous operands of these shapes, broadcast to `result`.
template <int kOperands>
StridedDims<kOperands> BroadcastDims(const Shape& result,
                                     const Shape* const (&operands)[kOperands]) {
  int64_t steps[kOperands][Shape::kMaxDims] = {};
  for (int i = 0; i < kOperands; ++i) {
    const int missing = result.num_dims() - operands[i]->num_dims();
    int64_t step = 1;
    for (int dim = result.num_dims(); dim-- > missing;) {
      const int64_t size = operands[i]->dim(dim - missing);
      steps[i][dim] = size == 1 ? 0 : step;
      step *= size;
    }
  }
  StridedDims<kOperands> dims;
  for (int dim = 0; dim < result.num_dims(); ++dim) {
    int64_t of_dim[kOperands];
    for (int i = 0; i < kOperands; ++i) of_dim[i] = steps[i][dim];
    dims.Add(result.dim(dim), of_dim);
  }
  dims.Finish();
  return dims;
}

}  // namespace zg
