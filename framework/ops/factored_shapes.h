// The matrices whose second moments are factored (factored_update.cc): a tensor of two dims or more
// is `count` matrices of its last two dims. Their row states are end to end in the tensors' order,
// and so are their column states. In a bucket of several parts (bucket_parts.h) each part has every
// n-th block of a tensor's elements, for n parts.
#pragma once

#include <cstdint>
#include <vector>

#include "framework/base/host_device.h"
#include "framework/base/status.h"
#include "framework/ir/op_def.h"
#include "framework/ir/sbp.h"

namespace zg {

struct FactoredTensor {
  int64_t begin = 0;  // in the bucket, or in each of its parts
  int64_t count = 1;
  int64_t rows = 1;  // of each matrix
  int64_t columns = 1;
  int64_t first_row = 0;     // in the state of rows
  int64_t first_column = 0;  // in the state of columns
  int64_t parts = 1;
  int64_t block = 0;  // elements that are consecutive both in a part and in the whole; 0: all

  constexpr int64_t num_rows() const { return count * rows; }
  constexpr int64_t num_columns() const { return count * columns; }
  constexpr int64_t size() const { return count * rows * columns; }
  constexpr int64_t part_size() const { return size() / parts; }

  // The tensor's element that a part has at index `own`.
  ZG_HOST_DEVICE int64_t WholeElement(int64_t own, int64_t part) const {
    return parts == 1 ? own : (own / block * parts + part) * block + own % block;
  }
  // The index of an element in the part; -1: another part has it.
  ZG_HOST_DEVICE int64_t OwnElement(int64_t whole, int64_t part) const {
    if (parts == 1) return whole;
    const int64_t index = whole / block;
    return index % parts == part ? index / parts * block + whole % block : -1;
  }
};

struct FactoredTensors {
  std::vector<FactoredTensor> tensors;
  int64_t num_rows = 0;
  int64_t num_columns = 0;
};

// Reads the attribute `matrices`: begin, count, rows and columns of each; if it is empty, the
// parameter is one tensor of two dims or more.
FactoredTensors FactoredTensorsOf(const ir::Attributes& attributes, const Shape& parameter);

// For a call of this family, whose input 0 is the parameter or its gradient; in a bucket of several
// parts, with the block of each, from the attribute `blocks`.
FactoredTensors FactoredTensorsOf(const ir::OpCall& call);

// Whether what the attribute `matrices` has can be read at all, before it is.
Status CheckMatricesAttribute(const ir::OpCall& call);

// Appends a tensor to the attribute.
void AppendMatrices(const Shape& tensor, int64_t begin, std::vector<int64_t>* matrices);

// The element that it appends to `blocks`, if `split` cuts the tensor into so many parts.
int64_t BlockOfPart(const Shape& tensor, Sbp split, int64_t parts);

}  // namespace zg
