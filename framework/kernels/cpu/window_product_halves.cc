// WindowProduct: the products of bf16, by a method that multiplies such.
#include <algorithm>

#include "framework/kernels/cpu/window_product.h"

namespace zg {

void WindowProduct::PackHalves(const Matrix& matrix, const BFloat16* weights_of_group,
                               float* scratch, float* packed) const {
  const std::vector<int64_t>& taps = windows_.phases[matrix.phases[0]].taps;
  const auto num_taps = static_cast<int64_t>(taps.size());
  const int64_t rows = matrix.product_rows();
  for (int64_t begin = 0; begin < matrix.depth(); begin += kHalfDepth) {
    const int64_t depth = std::min(kHalfDepth, matrix.depth() - begin);
    StoredBlock block = {nullptr, rows, false, rows, depth};
    if (sizes_.weight.FollowEachOther(taps) && matrix.phases.size() == 1) {
      block.data = weights_of_group + matrix.weights[0] + begin;
      block.stride = sizes_.weight.by_result;
      block.runs_along_k = true;
    } else {  // (depth, rows)
      auto* const copy = reinterpret_cast<BFloat16*>(scratch + layout_.panel);
      for (int64_t k = 0; k < depth; ++k) {
        const BFloat16* const from = weights_of_group +
                                     (begin + k) / num_taps * sizes_.weight.by_source +
                                     taps[(begin + k) % num_taps];
        for (int64_t row = 0; row < rows; ++row) copy[k * rows + row] = from[matrix.weights[row]];
      }
      block.data = copy;
    }
    method_->pack_a(block, packed);
    packed += method_->PackedASize(rows, depth);
  }
}

void WindowProduct::MultiplyHalves(const Matrix& matrix, const float* weights,
                                   const BFloat16* source, int64_t columns, bool continues,
                                   float* sums, float* scratch) const {
  auto* const copy = reinterpret_cast<BFloat16*>(scratch + layout_.panel);
  for (int64_t begin = 0; begin < matrix.depth(); begin += kHalfDepth) {
    BlockProduct product;
    product.depth = std::min(kHalfDepth, matrix.depth() - begin);
    const IndexedMatrix<BFloat16> windows = {source, matrix.rows.data() + begin,
                                             matrix.columns.data(), matrix.run};
    CopyIndexed(windows, product.depth, columns, columns, copy);
    method_->pack_b({copy, columns, false, columns, product.depth}, scratch + layout_.packed);
    product.a = weights;
    product.b = scratch + layout_.packed;
    product.rows = matrix.product_rows();
    product.columns = columns;
    product.c = sums;
    product.c_stride = RoundUp(columns, method_->column_unit);
    product.continues = begin > 0 || continues;
    method_->multiply(product);
    weights += method_->PackedASize(product.rows, product.depth);
  }
}

}  // namespace zg
