// Fills the rows of a matrix: what a product without terms comes to.
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

// matrix[r, c] = row[c] + addend[r, c]; what is null counts as zeros.
Status BroadcastRow(const RowsToFill& shape, const void* row, const void* addend, void* matrix,
                    void* stream);

}  // namespace zg::cuda
