// NumPy's broadcasting of operands, for references.
#pragma once

#include <algorithm>
#include <vector>

#include "tests/ops/op_case.h"

namespace zg::testing {

inline Shape BroadcastShape(const std::vector<ReferenceTensor>& operands) {
  std::vector<int64_t> dims;
  for (const ReferenceTensor& operand : operands) {
    const std::vector<int64_t>& own = operand.shape.dims();
    if (own.size() > dims.size()) dims.insert(dims.begin(), own.size() - dims.size(), 1);
    for (size_t i = 1; i <= own.size(); ++i) {
      int64_t& size = dims[dims.size() - i];
      size = size == 1 ? own[own.size() - i] : size;
    }
  }
  return Shape(dims);
}

// The operand's element for each element of the result.
inline std::vector<double> BroadcastTo(const Shape& result, const ReferenceTensor& operand) {
  std::vector<double> values;
  for (int64_t i = 0; i < result.num_elements(); ++i) {
    int64_t rest = i, at = 0, step = 1;
    for (int dim = 1; dim <= operand.shape.num_dims(); ++dim) {
      const int64_t size = operand.shape.dim(-dim);
      if (size > 1) at += rest % result.dim(-dim) * step;
      step *= size;
      rest /= result.dim(-dim);
    }
    values.push_back(operand.values[at]);
  }
  return values;
}

}  // namespace zg::testing
