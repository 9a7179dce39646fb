// Gathers elements of an operand in the order of the result.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "framework/kernels/strided_dims.h"

namespace zg {

// block[k] = data[OffsetOf(operand, begin + k)] for k < count.
template <int kOperands, typename T>
void GatherElements(const StridedDims<kOperands>& dims, int operand, const T* data, int64_t begin,
                    int64_t count, T* block) {
  const int last = dims.num_dims - 1;
  const int64_t* const strides = dims.strides[operand];
  const int64_t row = dims.sizes[last];
  const int64_t step = strides[last];
  // The position in the result, and the operand's row there; rows may be short, so that divisions for
  // each would take longer than the copy.
  int64_t index[Shape::kMaxDims];
  const T* from = data;
  for (int dim = last; dim >= 0; begin /= dims.sizes[dim--]) {
    index[dim] = begin % dims.sizes[dim];
    if (dim != last) from += index[dim] * strides[dim];
  }
  for (int64_t done = 0, column = index[last]; done < count; column = 0) {
    const int64_t take = std::min(row - column, count - done);
    if (step == 0) {
      std::fill_n(block + done, take, *from);
    } else if (step == 1) {
      std::memcpy(block + done, from + column, take * sizeof(T));
    } else {
      for (int64_t i = 0; i < take; ++i) block[done + i] = from[(column + i) * step];
    }
    done += take;
    for (int dim = last - 1; dim >= 0; --dim) {
      from += strides[dim];
      if (++index[dim] < dims.sizes[dim]) break;
      from -= dims.sizes[dim] * strides[dim];
      index[dim] = 0;
    }
  }
}

}  // namespace zg
