// Gathers elements of an operand in the order of the result.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "framework/kernels/strided_dims.h"

namespace zg {

// Rows of a multiple of so many elements are copied in pieces of this size, which are a few moves:
// for a short row, calls of memcpy and fill would take longer than the copy.
inline constexpr int64_t kGatherPiece = 16;

// Rows whose elements are all the same, or next to each other; the next one is `stride` further.
template <typename T>
ZG_INLINE void GatherWholeRows(const T* from, int64_t stride, bool repeats, int64_t rows,
                               int64_t row, T* block) {
  for (int64_t i = 0; i < rows; ++i, from += stride) {
    for (int64_t column = 0; column < row; column += kGatherPiece, block += kGatherPiece) {
      if (repeats) {
        std::fill_n(block, kGatherPiece, *from);
      } else {
        std::memcpy(block, from + column, kGatherPiece * sizeof(T));
      }
    }
  }
}

// A few elements, for which a call of memcpy would take longer than the copy.
template <typename T>
ZG_INLINE void CopyFew(const T* from, int64_t count, T* to) {
  for (; count >= 4; count -= 4, from += 4, to += 4) std::memcpy(to, from, 4 * sizeof(T));
  if ((count & 2) != 0) {
    std::memcpy(to, from, 2 * sizeof(T));
    from += 2;
    to += 2;
  }
  if ((count & 1) != 0) *to = *from;
}

// Part of a row, whose elements are `step` apart. Returns their number.
template <typename T>
int64_t GatherRow(const T* from, int64_t step, int64_t count, T* block) {
  if (step == 0 && count <= kGatherPiece) {
    T piece[4];
    std::fill_n(piece, 4, *from);
    for (int64_t i = 0; i < count; i += 4)
      CopyFew(piece, std::min<int64_t>(4, count - i), block + i);
  } else if (step == 0) {
    std::fill_n(block, count, *from);
  } else if (step == 1 && count <= kGatherPiece) {
    CopyFew(from, count, block);
  } else if (step == 1) {
    std::memcpy(block, from, count * sizeof(T));
  } else {
    for (int64_t i = 0; i < count; ++i) block[i] = from[i * step];
  }
  return count;
}

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
  const bool in_pieces = last > 0 && row % kGatherPiece == 0 && step <= 1;
  for (int64_t done = 0, column = index[last]; done < count; column = 0) {
    if (in_pieces && column == 0 && count - done >= row) {
      const int64_t rows = std::min(dims.sizes[last - 1] - index[last - 1], (count - done) / row);
      GatherWholeRows(from, strides[last - 1], step == 0, rows, row, block + done);
      done += rows * row;
      // The last of them is counted below.
      index[last - 1] += rows - 1;
      from += (rows - 1) * strides[last - 1];
    } else {
      done +=
          GatherRow(from + column * step, step, std::min(row - column, count - done), block + done);
    }
    for (int dim = last - 1; dim >= 0; --dim) {
      from += strides[dim];
      if (++index[dim] < dims.sizes[dim]) break;
      from -= dims.sizes[dim] * strides[dim];
      index[dim] = 0;
    }
  }
}

}  // namespace zg
