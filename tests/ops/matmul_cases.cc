#include <algorithm>

#include "tests/ops/op_case.h"

namespace zg::testing {
namespace {

int64_t DimOf(const Shape& shape, int from_last) {
  return from_last <= shape.num_dims() ? shape.dim(-from_last) : 1;
}

// The matrix of an operand for a batch of the result, whose dims are `batch`.
const double* MatrixOf(const ReferenceTensor& x, const std::vector<int64_t>& batch, int64_t index) {
  int64_t offset = 0;
  int64_t step = x.shape.dim(-1) * x.shape.dim(-2);
  for (size_t i = 0; i < batch.size(); ++i) {  // from the last one
    const int64_t size = batch[batch.size() - 1 - i];
    const int64_t own = DimOf(x.shape, static_cast<int>(i) + 3);
    if (own > 1) offset += index % size * step;
    step *= own;
    index /= size;
  }
  return &x.values[offset];
}

ReferenceOutputs Matmul(const ReferenceCall& call) {
  const ReferenceTensor& a = call.inputs[0];
  const ReferenceTensor& b = call.inputs[1];
  const bool ta = call.attributes.Bool("transpose_a");
  const bool tb = call.attributes.Bool("transpose_b");
  const int64_t m = a.shape.dim(ta ? -1 : -2), k = a.shape.dim(ta ? -2 : -1);
  const int64_t n = b.shape.dim(tb ? -2 : -1);
  std::vector<int64_t> batch;
  int64_t count = 1;
  for (int dim = std::max(a.shape.num_dims(), b.shape.num_dims()); dim > 2; --dim) {
    batch.push_back(std::max(DimOf(a.shape, dim), DimOf(b.shape, dim)));
    count *= batch.back();
  }
  std::vector<double> y;
  for (int64_t index = 0; index < count; ++index) {
    const double* const of_a = MatrixOf(a, batch, index);
    const double* const of_b = MatrixOf(b, batch, index);
    for (int64_t row = 0; row < m; ++row) {
      for (int64_t column = 0; column < n; ++column) {
        double sum = 0.0;
        for (int64_t i = 0; i < k; ++i) {
          sum += (ta ? of_a[i * m + row] : of_a[row * k + i]) *
                 (tb ? of_b[column * k + i] : of_b[i * n + column]);
        }
        y.push_back(sum);
      }
    }
  }
  return {y};
}

OpCase Product(std::string label, const Shape& a, const Shape& b, bool transpose_a = false,
               bool transpose_b = false) {
  return {.op = "matmul",
          .label = std::move(label),
          .inputs = {F32(a), F32(b)},
          .attributes = {{"transpose_a", transpose_a}, {"transpose_b", transpose_b}},
          .reference = Matmul,
          .sums_products = true};
}

}  // namespace

FamilyCases MatmulCases() {
  FamilyCases family;
  family.cases = {
      Product("matrices", {5, 7}, {7, 3}),
      Product("a transposed", {7, 5}, {7, 3}, true, false),
      Product("b transposed", {5, 7}, {3, 7}, false, true),
      Product("both transposed", {7, 5}, {3, 7}, true, true),
      Product("a batch", {4, 5, 7}, {4, 7, 3}),
      Product("a batch, transposed", {4, 7, 5}, {4, 3, 7}, true, true),
      Product("one b", {4, 5, 7}, {7, 3}),
      Product("one a", {5, 7}, {4, 7, 3}),
      Product("two batch dims", {2, 1, 5, 7}, {3, 7, 3}),
      Product("splits", {6, 6, 6}, {6, 6, 6}),
      Product("splits, a transposed", {6, 6, 6}, {6, 6, 6}, true, false),
      Product("splits, b transposed", {6, 6, 6}, {6, 6, 6}, false, true),
      Product("splits of matrices", {6, 6}, {6, 6}),
      Product("splits of matrices, a transposed", {6, 6}, {6, 6}, true, false),
      Product("splits of matrices, b transposed", {6, 6}, {6, 6}, false, true),
      Product("splits of matrices, transposed", {6, 6}, {6, 6}, true, true),
      Product("splits, transposed", {6, 6, 6}, {6, 6, 6}, true, true),
      Product("splits of one b", {6, 6, 6}, {6, 6}),
      Product("splits of one a", {6, 6}, {6, 6, 6}),
      Product("splits of two batch dims", {6, 1, 6, 6}, {6, 6, 6}),
      Product("a vector", {35, 18}, {18, 1}),
      Product("a vector, a transposed", {18, 35}, {18, 1}, true, false),
      Product("a vector, b transposed", {35, 18}, {1, 18}, false, true),
      Product("a vector, both transposed", {18, 35}, {1, 18}, true, true),
      Product("splits of vectors", {6, 6, 6}, {6, 6, 1}),
  };
  family.rejections = {
      {"matmul",
       {F32({5}), F32({5, 3})},
       {},
       "matmul: got no matrices, expected at least two dims: a f32[5], b f32[5,3]"},
      {"matmul",
       {F32({5, 7}), F32({5, 3})},
       {},
       "matmul: inner dims differ: a f32[5,7], b f32[5,3]"},
      {"matmul",
       {F32({2, 5, 7}), F32({3, 7, 3})},
       {},
       "matmul: the batch dims cannot be broadcast to one: a f32[2,5,7], b f32[3,7,3]"},
  };
  family.large = {Product("a batch", {3, 130, 70}, {3, 70, 90})};
  for (OpCase& large : family.large) large.reference = nullptr;
  family.bench = {Product("heads", {48, 256, 64}, {48, 256, 64}, false, true),
                  Product("a weight", {8, 256, 384}, {384, 1536}),
                  Product("a vector", {2048, 1024}, {1024, 1}),
                  Product("a vector, a transposed", {1024, 2048}, {1024, 1}, true, false)};
  return family;
}

}  // namespace zg::testing
