// Where the matrices lie whose second moments are factored (factored_update.cc): a tensor of two
// dims or more is `count` matrices of its last two dims. Their row and column states lie end to end
// in the tensors' order, rows for themselves and columns for themselves.
#pragma once

#include <cstdint>
#include <vector>

#include "framework/ir/attribute.h"
#include "framework/tensor/shape.h"

namespace zg {

struct FactoredTensor {
  int64_t begin = 0;  // in the bucket
  int64_t count = 1;
  int64_t rows = 1;  // of each matrix
  int64_t columns = 1;
  int64_t first_row = 0;     // in the state of rows
  int64_t first_column = 0;  // in the state of columns

  constexpr int64_t num_rows() const { return count * rows; }
  constexpr int64_t num_columns() const { return count * columns; }
  constexpr int64_t size() const { return count * rows * columns; }
};

struct FactoredTensors {
  std::vector<FactoredTensor> tensors;
  int64_t num_rows = 0;
  int64_t num_columns = 0;
};

// Those of the attribute `matrices`: begin, count, rows and columns of each; if it is empty, the
// parameter is one tensor of two dims or more.
FactoredTensors FactoredTensorsOf(const ir::Attributes& attributes, const Shape& parameter);

// What a tensor adds to the attribute.
void AppendMatrices(const Shape& tensor, int64_t begin, std::vector<int64_t>* matrices);

}  // namespace zg
