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
  const int64_t row = dims.sizes[last];
  const int64_t step = dims.strides[operand][last];
  for (int64_t done = 0; done < count;) {
    const int64_t take = std::min(row - (begin + done) % row, count - done);
    const T* const from = data + dims.OffsetOf(operand, begin + done);
    if (step == 0) {
      std::fill_n(block + done, take, *from);
    } else if (step == 1) {
      std::memcpy(block + done, from, take * sizeof(T));
    } else {
      for (int64_t i = 0; i < take; ++i) block[done + i] = from[i * step];
    }
    done += take;
  }
}

}  // namespace zg
