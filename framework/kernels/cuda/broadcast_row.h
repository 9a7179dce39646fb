// Fills the rows of a matrix: the result of a product without terms.
#pragma once

#include <cstdint>

#include "framework/base/status.h"
#include "framework/tensor/dtype.h"

namespace zg::cuda {

struct RowsToFill {
  DType dtype;
  int64_t rows;
  int64_t columns;
};

// matrix[r, c] = row[c] + addend[r, c]; null operands count as zeros.
Status BroadcastRow(const RowsToFill& shape, const void* row, const void* addend, void* matrix,
                    void* stream);

}  // namespace zg::cuda
