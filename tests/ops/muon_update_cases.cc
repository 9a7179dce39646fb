#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "framework/ops/factored_shapes.h"
#include "tests/ops/op_case.h"

namespace zg::testing {
namespace {

// 6x5 at 0, 4x8 at 32, 8x4 at 64, 1x16 at 96, 3x5 at 112, 7x9 at 128, which ends at 191: halves and
// thirds of the bucket cut none.
const std::vector<int64_t> kMatrices = {0,  1, 6, 5,  32,  1, 4, 8, 64,  1, 8, 4,
                                        96, 1, 1, 16, 112, 1, 3, 5, 128, 1, 7, 9};
constexpr int64_t kBucket = 192;

ir::Attributes Attributes(std::vector<int64_t> matrices = {}) {
  return {
      {"lr", 0.25}, {"weight_decay", 0.1}, {"momentum", 0.9}, {"matrices", std::move(matrices)}};
}

using Matrix = std::vector<double>;  // row-major

// a (m, k) times b (k, n).
Matrix Product(const Matrix& a, const Matrix& b, int64_t m, int64_t k, int64_t n) {
  Matrix c(m * n, 0.0);
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t l = 0; l < k; ++l) {
      for (int64_t j = 0; j < n; ++j) c[i * n + j] += a[i * k + l] * b[l * n + j];
    }
  }
  return c;
}

Matrix Transposed(const Matrix& a, int64_t rows, int64_t columns) {
  Matrix t(a.size());
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) t[j * rows + i] = a[i * columns + j];
  }
  return t;
}

// As in the source's listing: a tall matrix is transposed before and after.
Matrix Orthogonal(Matrix x, int64_t rows, int64_t columns, const ir::Attributes& attributes) {
  const bool is_tall = rows > columns;
  if (is_tall) {
    x = Transposed(x, rows, columns);
    std::swap(rows, columns);
  }
  double squares = 0;
  for (const double value : x) squares += value * value;
  const double norm = std::max(std::sqrt(squares), attributes.Float("epsilon"));
  for (double& value : x) value /= norm;
  for (int64_t step = 0; step < attributes.Int("steps"); ++step) {
    Matrix gram = Product(x, Transposed(x, rows, columns), rows, columns, rows);
    const Matrix square = Product(gram, gram, rows, rows, rows);
    for (size_t i = 0; i < gram.size(); ++i) {
      gram[i] = attributes.Float("b") * gram[i] + attributes.Float("c") * square[i];
    }
    const Matrix y = Product(gram, x, rows, rows, columns);
    for (size_t i = 0; i < x.size(); ++i) x[i] = attributes.Float("a") * x[i] + y[i];
  }
  return is_tall ? Transposed(x, rows, columns) : x;
}

ReferenceOutputs Reference(const ReferenceCall& call) {
  const ir::Attributes& attributes = call.attributes;
  std::vector<double> p = call.inputs[0].values, g = call.inputs[1].values,
                      m = call.inputs[2].values;
  if (call.inputs.size() == 4) {
    const double factor = call.inputs[3].values[0];
    if (factor == 0.0) return {p, m};
    for (double& x : g) x *= factor;
  }
  const double lr = attributes.Float("lr") * call.step.lr_factor;
  const double momentum = attributes.Float("momentum");
  for (const FactoredTensor& matrix : FactoredTensorsOf(attributes, call.inputs[0].shape).tensors) {
    Matrix x;
    for (int64_t i = matrix.begin; i < matrix.begin + matrix.size(); ++i) {
      m[i] = momentum * m[i] + (1.0 - momentum) * g[i];
      const bool nesterov = attributes.Bool("nesterov");
      x.push_back(nesterov ? (1.0 - momentum) * g[i] + momentum * m[i] : m[i]);
    }
    x = Orthogonal(x, matrix.rows, matrix.columns, attributes);
    const auto rows = static_cast<double>(matrix.rows);
    const auto columns = static_cast<double>(matrix.columns);
    const double scale = attributes.Bool("match_rms_adamw")
                             ? 0.2 * std::sqrt(std::max(rows, columns))
                             : std::sqrt(std::max(1.0, rows / columns));
    for (int64_t i = 0; i < matrix.size(); ++i) {
      double& value = p[matrix.begin + i];
      value = value * (1.0 - lr * attributes.Float("weight_decay")) - lr * scale * x[i];
    }
  }
  return {p, m};
}

// The steps multiply singular values near 0, and their roundings, by hundreds.
constexpr double kTolerance = 1e-4;

OpCase Case(std::string label, const Shape& shape, ir::Attributes attributes) {
  return {.op = "muon_update",
          .label = std::move(label),
          .inputs = {F32(shape), F32(shape), F32(shape)},
          .attributes = std::move(attributes),
          .reference = Reference,
          .tolerance = kTolerance,
          .f32_inputs = {0, 2}};
}

}  // namespace

FamilyCases MuonUpdateCases() {
  FamilyCases family;
  for (const Shape& shape : {Shape{5, 7}, Shape{1, 9}, Shape{9, 1}, Shape{20, 6}, Shape{12, 12}}) {
    family.cases.push_back(Case(shape.ToString(), shape, Attributes()));
  }
  ir::Attributes others = Attributes();
  others.Set("nesterov", false);
  others.Set("match_rms_adamw", true);
  others.Set("steps", int64_t{3});
  family.cases.push_back(Case("without nesterov", {6, 4}, others));
  family.cases.push_back(Case("a bucket", {kBucket}, Attributes(kMatrices)));
  for (const double factor : {0.75, 0.0}) {
    OpCase controlled =
        Case(fmt::format("a bucket, factor {}", factor), {kBucket}, Attributes(kMatrices));
    controlled.inputs.push_back(F32({2}));
    controlled.f32_inputs.push_back(3);
    controlled.prepare = [factor](ReferenceCall& call) {
      call.inputs.back().values = {factor, 7.0};
    };
    family.cases.push_back(std::move(controlled));
  }
  OpCase zeros = Case("a gradient of zeros", {4, 6}, Attributes());
  zeros.prepare = [](ReferenceCall& call) {
    for (int i : {1, 2}) std::fill(call.inputs[i].values.begin(), call.inputs[i].values.end(), 0.0);
  };
  family.cases.push_back(std::move(zeros));
  family.large.push_back(Case("large", {70, 513}, Attributes()));
  family.large.push_back(Case("large and tall", {300, 40}, Attributes()));
  family.bench.push_back(Case("{768, 768}", {768, 768}, Attributes()));
  family.bench.push_back(Case("{3072, 768}", {3072, 768}, Attributes()));
  const InputSpec vector = F32({8}), bucket = F32({kBucket});
  family.rejections = {
      {"muon_update",
       {vector, vector, vector},
       Attributes(),
       "muon_update: p is f32[8], expected a matrix; give what is no matrix another optimizer in a "
       "parameter group"},
      {"muon_update",
       {F32({2, 3}), F32({3, 2}), F32({2, 3})},
       Attributes(),
       "muon_update: shapes differ: p f32[2,3], g f32[3,2], m f32[2,3]"},
      {"muon_update",
       {bucket, bucket, bucket},
       Attributes({0, 1, 3}),
       "muon_update: got 3 numbers in `matrices`, expected begin, count, rows and columns"},
      {"muon_update",
       {bucket, bucket, bucket},
       Attributes({0, 1, 5, 5, 16, 1, 2, 3}),
       "muon_update: got 1 matrices of 2 x 3 at 16, expected one behind the one before"},
      {"muon_update",
       {bucket, bucket, bucket},
       Attributes({0, 2, 3, 3}),
       "muon_update: got 2 matrices of 3 x 3 at 0, expected one behind the one before"},
  };
  return family;
}

}  // namespace zg::testing
