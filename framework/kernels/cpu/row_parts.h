// The rows of a tensor (..., columns) in parts (ops/summed_parts.h): part p has the p-th of equal
// ranges of one of the leading dims, for every index of the others.
#pragma once

#include <algorithm>
#include <cstdint>

#include "framework/kernels/cpu/multiversion.h"
#include "framework/ops/summed_parts.h"
#include "framework/tensor/shape.h"

namespace zg {

class RowParts {
 public:
  explicit RowParts(int64_t rows) : run_(rows), rows_(rows) {}  // one part
  // Those that the call's sums over the rows of input 0 have.
  static RowParts Of(const ir::OpCall& call) {
    const Shape& shape = call.inputs[0].shape;
    const SummedParts parts = SummedParts::Of(call);
    if (parts.count > 1) return RowParts(shape, parts);
    int64_t rows = 1;
    for (int dim = 0; dim + 1 < shape.num_dims(); ++dim) rows *= shape.dim(dim);
    return RowParts(rows);
  }

  int64_t num_parts() const { return num_parts_; }
  int64_t rows() const { return rows_; }  // of a part

  // The index in the tensor of row `i` of a part.
  int64_t Row(int64_t part, int64_t i) const {
    return (i / run_ * num_parts_ + part) * run_ + i % run_;
  }

  // Calls f(first, end), with indices in the tensor, for the rows [begin, end) of a part.
  template <typename F>
  void ForRuns(int64_t part, int64_t begin, int64_t end, const F& f) const {
    while (begin < end) {
      const int64_t count = std::min(end - begin, run_ - begin % run_);
      const int64_t first = Row(part, begin);
      f(first, first + count);
      begin += count;
    }
  }

 private:
  RowParts(const Shape& shape, const SummedParts& parts) : num_parts_(parts.count) {
    int64_t outer = 1, inner = 1;
    for (int dim = 0; dim + 1 < shape.num_dims(); ++dim) {
      if (dim < parts.dim) outer *= shape.dim(dim);
      if (dim > parts.dim) inner *= shape.dim(dim);
    }
    run_ = shape.dim(parts.dim) / num_parts_ * inner;
    rows_ = outer * run_;
  }

  int64_t num_parts_ = 1;
  int64_t run_ = 0;  // successive rows of the tensor that a part has
  int64_t rows_ = 0;
};

inline void AddInto(const float* x, int64_t count, float* sum) {
  Multiversion([=]() ZG_VERSION {
    ZG_INDEPENDENT
    for (int64_t i = 0; i < count; ++i) sum[i] += x[i];
  });
}

// Adds the sums of the parts, `stride` apart, pairwise: the total is in the first one's place.
inline void AddPairwise(int64_t num_parts, int64_t count, int64_t stride, float* sums) {
  for (int64_t step = 1; step < num_parts; step *= 2) {
    for (int64_t part = 0; part < num_parts; part += 2 * step) {
      AddInto(sums + (part + step) * stride, count, sums + part * stride);
    }
  }
}

}  // namespace zg
