// Decomposes a sum over dims into sums over the middle of three dims, and a repetition along dims
// into a walk over its operand.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "framework/kernels/strided_dims.h"
#include "framework/tensor/shape.h"

namespace zg {

// y[o, i] = sum over s of x[o, s, i].
struct SumStage {
  int64_t outer = 1;
  int64_t summed = 1;
  int64_t inner = 1;
};

// One stage for each group of neighbouring dims, the last group first; at least one.
inline std::vector<SumStage> SumStages(const Shape& x, const std::vector<int64_t>& dims) {
  std::vector<SumStage> stages;
  int64_t inner = 1;  // product of the kept dims after `dim`
  bool in_group = false;
  for (int dim = x.num_dims(); dim-- > 0;) {
    const int64_t size = x.dim(dim);
    const bool is_summed = std::binary_search(dims.begin(), dims.end(), dim);
    if (!is_summed) {
      inner *= size;
    } else if (in_group) {
      stages.back().summed *= size;
    } else {
      stages.push_back({1, size, inner});
    }
    in_group = is_summed;
    if (!is_summed) continue;
    stages.back().outer = 1;
    for (int before = 0; before < dim; ++before) stages.back().outer *= x.dim(before);
  }
  if (stages.empty()) stages.push_back({x.num_elements(), 1, 1});
  return stages;
}

// For `expand`'s operand x and result y; `dims` and `keep_dims` are its attributes.
inline StridedDims<1> ExpandDims(const Shape& x, const Shape& y, const std::vector<int64_t>& dims,
                                 bool keep_dims) {
  int64_t steps[Shape::kMaxDims] = {};
  int64_t step = 1;
  int own = x.num_dims();
  for (int dim = y.num_dims(); dim-- > 0;) {
    const bool is_repeated = std::binary_search(dims.begin(), dims.end(), dim);
    if (!is_repeated || keep_dims) --own;
    if (is_repeated) continue;
    steps[dim] = step;
    step *= x.dim(own);
  }
  StridedDims<1> walk;
  for (int dim = 0; dim < y.num_dims(); ++dim) walk.Add(y.dim(dim), {steps[dim]});
  walk.Finish();
  return walk;
}

}  // namespace zg
