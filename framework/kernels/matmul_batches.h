// The products that make up a matmul node: their sizes and the offsets of their operands.
#pragma once

#include <cstdint>
#include <vector>

#include "framework/kernels/kernel.h"
#include "framework/kernels/strided_dims.h"

namespace zg {

struct MatmulBatches {
  explicit MatmulBatches(const KernelSpec& spec) {
    const Shape& a = spec.call.inputs[0].shape;
    const Shape& b = spec.call.inputs[1].shape;
    const Shape& y = spec.outputs[0].shape;
    transpose_a = spec.call.attributes.Bool("transpose_a");
    transpose_b = spec.call.attributes.Bool("transpose_b");
    m = y.dim(-2);
    n = y.dim(-1);
    k = a.dim(transpose_a ? -2 : -1);
    const Shape batch = BatchOf(y);
    const Shape of_a = BatchOf(a);
    const Shape of_b = BatchOf(b);
    count = batch.num_elements();
    dims = BroadcastDims<2>(batch, {&of_a, &of_b});
  }

  static Shape BatchOf(const Shape& shape) {
    return Shape(std::vector<int64_t>(shape.dims().begin(), shape.dims().end() - 2));
  }

  // Elements from the beginning of an operand.
  int64_t OffsetOfA(int64_t batch) const { return dims.OffsetOf(0, batch) * m * k; }
  int64_t OffsetOfB(int64_t batch) const { return dims.OffsetOf(1, batch) * k * n; }
  int64_t OffsetOfY(int64_t batch) const { return batch * m * n; }

  int64_t count = 1;
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  bool transpose_a = false;
  bool transpose_b = false;
  StridedDims<2> dims;
};

}  // namespace zg
