// The rows and columns of a factored tensor's elements (ops/factored_shapes.h).
#pragma once

#include <algorithm>
#include <cstdint>

#include "framework/ops/factored_shapes.h"

namespace zg {

// Consecutive elements of one row.
struct FactoredSegment {
  int64_t row;     // in the state of rows
  int64_t column;  // of the first element, in the state of columns
  int64_t begin;   // in the block
  int64_t count;
};

// The elements of a tensor that a part has.
struct FactoredBlock {
  int64_t tensor;
  int64_t part;
  int64_t offset;  // in the part's elements of the tensor
  int64_t begin;   // in the local part of the bucket
  int64_t count;
};

// Calls visit(FactoredSegment) for the rows of the block, in order.
template <typename Visit>
void ForSegments(const FactoredTensor& tensor, const FactoredBlock& block, const Visit& visit) {
  for (int64_t done = 0; done < block.count;) {
    const int64_t own = block.offset + done;
    const int64_t whole = tensor.WholeElement(own, block.part);
    const int64_t row = whole / tensor.columns;
    const int64_t column = whole % tensor.columns;
    int64_t in_row = std::min(tensor.columns - column, block.count - done);
    if (tensor.parts > 1) in_row = std::min(in_row, tensor.block - own % tensor.block);
    const int64_t matrix = row / tensor.rows;
    visit(FactoredSegment{tensor.first_row + row,
                          tensor.first_column + matrix * tensor.columns + column, done, in_row});
    done += in_row;
  }
}

}  // namespace zg
