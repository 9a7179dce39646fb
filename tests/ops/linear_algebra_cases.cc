#include <algorithm>
#include <cmath>

#include "tests/ops/op_case.h"

namespace zg::testing {
namespace {

using Matrix = std::vector<double>;  // (n, n), row by row

// One of a batch of matrices (.., rows, columns).
Matrix MatrixOf(const ReferenceTensor& batch, int64_t i) {
  const int64_t size = batch.shape.dim(-1) * batch.shape.dim(-2);
  return {batch.values.begin() + i * size, batch.values.begin() + (i + 1) * size};
}

int64_t CountOf(const ReferenceTensor& batch) {
  return batch.shape.num_elements() / (batch.shape.dim(-1) * batch.shape.dim(-2));
}

Matrix Transposed(const Matrix& a, int64_t n) {
  Matrix y(a.size());
  for (int64_t i = 0; i < n * n; ++i) y[i % n * n + i / n] = a[i];
  return y;
}

// By cofactors of the first row: exact enough, and no elimination.
double Determinant(const Matrix& a, int64_t n) {
  if (n == 0) return 1.0;
  double sum = 0.0;
  for (int64_t column = 0; column < n; ++column) {
    Matrix minor;
    for (int64_t i = n; i < n * n; ++i) {
      if (i % n != column) minor.push_back(a[i]);
    }
    sum += (column % 2 == 0 ? 1.0 : -1.0) * a[column] * Determinant(minor, n - 1);
  }
  return sum;
}

// a^-1 b by Cramer's rule for small matrices, else by Gauss and Jordan's elimination.
Matrix Solved(Matrix a, int64_t n, Matrix b) {
  const int64_t k = static_cast<int64_t>(b.size()) / n;
  if (n <= 4) {
    Matrix x(b.size());
    const double determinant = Determinant(a, n);
    for (int64_t i = 0; i < n * k; ++i) {
      Matrix with_column = a;
      for (int64_t r = 0; r < n; ++r) with_column[r * n + i / k] = b[r * k + i % k];
      x[i] = Determinant(with_column, n) / determinant;
    }
    return x;
  }
  for (int64_t c = 0; c < n; ++c) {
    int64_t pivot = c;
    for (int64_t r = c; r < n; ++r) {
      if (std::abs(a[r * n + c]) > std::abs(a[pivot * n + c])) pivot = r;
    }
    std::swap_ranges(a.begin() + c * n, a.begin() + (c + 1) * n, a.begin() + pivot * n);
    std::swap_ranges(b.begin() + c * k, b.begin() + (c + 1) * k, b.begin() + pivot * k);
    for (int64_t r = 0; r < n; ++r) {
      if (r == c) continue;
      const double factor = a[r * n + c] / a[c * n + c];
      for (int64_t j = 0; j < n; ++j) a[r * n + j] -= factor * a[c * n + j];
      for (int64_t j = 0; j < k; ++j) b[r * k + j] -= factor * b[c * k + j];
    }
  }
  for (int64_t i = 0; i < n * k; ++i) b[i] /= a[i / k * (n + 1)];
  return b;
}

// Joins f(i) of every matrix.
template <typename F>
ReferenceOutputs ForMatrices(const ReferenceCall& call, const F& f) {
  std::vector<double> y;
  for (int64_t i = 0; i < CountOf(call.inputs[0]); ++i) {
    const Matrix one = f(i);
    y.insert(y.end(), one.begin(), one.end());
  }
  return {y};
}

ReferenceOutputs Solve(const ReferenceCall& call) {
  const int64_t n = call.inputs[0].shape.dim(-1);
  return ForMatrices(call, [&](int64_t i) {
    const Matrix a = MatrixOf(call.inputs[0], i);
    return Solved(call.attributes.Bool("transposed") ? Transposed(a, n) : a, n,
                  MatrixOf(call.inputs[1], i));
  });
}

ReferenceOutputs Inverse(const ReferenceCall& call) {
  const int64_t n = call.inputs[0].shape.dim(-1);
  Matrix identity(n * n, 0.0);
  for (int64_t i = 0; i < n; ++i) identity[i * (n + 1)] = 1.0;
  return ForMatrices(call,
                     [&](int64_t i) { return Solved(MatrixOf(call.inputs[0], i), n, identity); });
}

ReferenceOutputs Slogdet(const ReferenceCall& call) {
  ReferenceOutputs outputs(2);
  for (int64_t i = 0; i < CountOf(call.inputs[0]); ++i) {
    const double det = Determinant(MatrixOf(call.inputs[0], i), call.inputs[0].shape.dim(-1));
    outputs[0].push_back(std::log(std::abs(det)));
    outputs[1].push_back(det < 0.0 ? -1.0 : 1.0);
  }
  return outputs;
}

// Row by row, where the kernels go by columns.
ReferenceOutputs Cholesky(const ReferenceCall& call) {
  const int64_t n = call.inputs[0].shape.dim(-1);
  return ForMatrices(call, [&](int64_t matrix) {
    const Matrix a = MatrixOf(call.inputs[0], matrix);
    Matrix l(n * n, 0.0);
    for (int64_t r = 0; r < n; ++r) {
      for (int64_t c = 0; c <= r; ++c) {
        double rest = a[r * n + c];
        for (int64_t j = 0; j < c; ++j) rest -= l[r * n + j] * l[c * n + j];
        l[r * n + c] = r == c ? std::sqrt(rest) : rest / l[c * (n + 1)];
      }
    }
    return l;
  });
}

ReferenceOutputs SolveTriangular(const ReferenceCall& call) {
  const int64_t n = call.inputs[0].shape.dim(-1);
  return ForMatrices(call, [&](int64_t i) {
    Matrix t = MatrixOf(call.inputs[0], i);
    for (int64_t at = 0; at < n * n; ++at) {
      const int64_t r = at / n, c = at % n;
      if (call.attributes.Bool("upper") ? r > c : r < c) t[at] = 0.0;
      if (r == c && call.attributes.Bool("unit")) t[at] = 1.0;
    }
    return Solved(call.attributes.Bool("transposed") ? Transposed(t, n) : t, n,
                  MatrixOf(call.inputs[1], i));
  });
}

// Far from singular, with signs of both kinds: pivots are not on the diagonal.
void Mix(ReferenceCall& call) {
  ReferenceTensor& a = call.inputs[0];
  const int64_t n = a.shape.dim(-1);
  for (int64_t i = 0; i < a.shape.num_elements(); ++i) {
    const int64_t r = i / n % n, c = i % n;
    if ((r + 1) % n == c) a.values[i] += i % 2 == 0 ? 2.0 * n : -2.0 * n;
  }
}
// Positive definite, and far from singular as a triangle.
void MakeDefinite(ReferenceCall& call) {
  ReferenceTensor& a = call.inputs[0];
  const int64_t n = a.shape.dim(-1);
  for (int64_t i = 0; i < a.shape.num_elements(); ++i) {
    if (i / n % n == i % n) a.values[i] += n;
  }
}

void AddCases(const std::string& label, const Shape& a, int64_t columns, FamilyCases* family) {
  Shape b = a;
  b.set_dim(b.num_dims() - 1, columns);
  const auto add = [&](const char* op, std::string own_label, std::vector<InputSpec> inputs,
                       ir::Attributes attributes,
                       ReferenceOutputs (*reference)(const ReferenceCall&),
                       void (*prepare)(ReferenceCall&)) {
    family->cases.push_back({.op = op,
                             .label = std::move(own_label),
                             .inputs = std::move(inputs),
                             .attributes = std::move(attributes),
                             .reference = reference,
                             .prepare = prepare,
                             .is_f32_only = true});
  };
  for (const bool transposed : {false, true}) {
    const std::string own_label = transposed ? label + ", transposed" : label;
    add("solve", own_label, {F32(a), F32(b)}, {{"transposed", transposed}}, Solve, Mix);
    for (const bool upper : {false, true}) {
      const bool unit = upper != transposed && columns % 2 == 0;
      add("solve_triangular", own_label + (upper ? ", upper" : ", lower") + (unit ? ", unit" : ""),
          {F32(a), F32(b)}, {{"upper", upper}, {"transposed", transposed}, {"unit", unit}},
          SolveTriangular, MakeDefinite);
    }
  }
  add("inverse", label, {F32(a)}, {}, Inverse, Mix);
  if (a.dim(-1) <= 6) add("slogdet", label, {F32(a)}, {}, Slogdet, Mix);
  add("cholesky", label, {F32(a)}, {}, Cholesky, MakeDefinite);
}

}  // namespace

FamilyCases LinearAlgebraCases() {
  FamilyCases family;
  AddCases("a matrix", {3, 3}, 2, &family);
  AddCases("a number", {1, 1}, 1, &family);
  AddCases("a batch", {2, 3, 4, 4}, 3, &family);
  AddCases("splits of columns", {4, 4}, 6, &family);
  AddCases("splits of a batch", {6, 3, 3}, 6, &family);
  AddCases("splits of two", {6, 6, 2, 2}, 6, &family);
  AddCases("larger", {2, 37, 37}, 5, &family);
  for (OpCase& one : family.cases) one.check_gradient = one.label.substr(0, 6) != "larger";
  const InputSpec matrix = F32({3, 3}), wide = F32({3, 4});
  const InputSpec half = {{DType::kBF16, {3, 3}}};
  family.rejections = {
      {"solve", {wide, wide}, {}, "solve: a is not square matrices: a f32[3,4], b f32[3,4]"},
      {"solve",
       {matrix, F32({4, 2})},
       {},
       "solve: b is not as many matrices of as many rows: a f32[3,3], b f32[4,2]"},
      {"solve", {matrix, half}, {}, "solve: b is not f32: a f32[3,3], b bf16[3,3]"},
      {"inverse", {half}, {}, "inverse: a is not f32: a bf16[3,3]"},
      {"slogdet", {F32({3})}, {}, "slogdet: a is not square matrices: a f32[3]"},
      {"cholesky", {wide}, {}, "cholesky: a is not square matrices: a f32[3,4]"},
      {"solve_triangular", {matrix, matrix}, {}, "solve_triangular: attribute 'upper' is missing"},
  };
  const auto add = [](const std::string& label, const Shape& a, const Shape& b,
                      std::vector<OpCase>* cases) {
    cases->push_back(Sized("solve", label, {F32(a), F32(b)}));
    cases->push_back(Sized("inverse", label, {F32(a)}));
    cases->push_back(Sized("slogdet", label, {F32(a)}));
    cases->push_back(Sized("cholesky", label, {F32(a)}));
    cases->push_back(Sized("solve_triangular", label, {F32(a), F32(b)}, {{"upper", false}}));
    for (size_t i = cases->size() - 5; i < cases->size(); ++i) {
      (*cases)[i].is_f32_only = true;
      (*cases)[i].prepare = MakeDefinite;
    }
  };
  add("a batch", {3, 70, 70}, {3, 70, 300}, &family.large);
  add("a batch", {64, 64, 64}, {64, 64, 16}, &family.bench);
  add("one matrix", {512, 512}, {512, 16}, &family.bench);
  family.exact_on_gpu = {"solve", "inverse", "slogdet", "cholesky", "solve_triangular"};
  return family;
}

}  // namespace zg::testing
