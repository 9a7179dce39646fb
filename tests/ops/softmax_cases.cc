#include <algorithm>
#include <cmath>

#include "tests/ops/op_case.h"

namespace zg::testing {
namespace {

// f(first, second, out) for each row of the first and the last input.
template <typename F>
ReferenceOutputs MapRows(const ReferenceCall& call, const F& f) {
  const int64_t columns = Columns(call.inputs[0]);
  std::vector<double> out(call.inputs[0].values.size());
  for (size_t begin = 0; begin < out.size(); begin += columns) {
    f(&call.inputs[0].values[begin], &call.inputs.back().values[begin], &out[begin], columns);
  }
  return {out};
}

double LogSumExp(const double* x, int64_t count) {
  const double largest = *std::max_element(x, x + count);
  double sum = 0.0;
  for (int64_t i = 0; i < count; ++i) sum += std::exp(x[i] - largest);
  return largest + std::log(sum);
}

void LogSoftmaxRow(const double* x, const double*, double* y, int64_t count) {
  for (int64_t i = 0; i < count; ++i) y[i] = x[i] - LogSumExp(x, count);
}
void SoftmaxRow(const double* x, const double*, double* y, int64_t count) {
  for (int64_t i = 0; i < count; ++i) y[i] = std::exp(x[i] - LogSumExp(x, count));
}
void SoftmaxGradRow(const double* dy, const double* y, double* dx, int64_t count) {
  double dot = 0.0;
  for (int64_t i = 0; i < count; ++i) dot += dy[i] * y[i];
  for (int64_t i = 0; i < count; ++i) dx[i] = y[i] * (dy[i] - dot);
}
void LogSoftmaxGradRow(const double* dy, const double* y, double* dx, int64_t count) {
  double sum = 0.0;
  for (int64_t i = 0; i < count; ++i) sum += dy[i];
  for (int64_t i = 0; i < count; ++i) dx[i] = dy[i] - std::exp(y[i]) * sum;
}

struct RowOp {
  const char* name;
  int num_inputs;
  void (*row)(const double*, const double*, double*, int64_t);
};

const RowOp kRowOps[] = {{"softmax", 1, SoftmaxRow},
                         {"softmax_grad", 2, SoftmaxGradRow},
                         {"log_softmax", 1, LogSoftmaxRow},
                         {"log_softmax_grad", 2, LogSoftmaxGradRow}};

}  // namespace

FamilyCases SoftmaxCases() {
  FamilyCases family;
  for (const RowOp& op : kRowOps) {
    const auto add_case = [&](const char* label, const Shape& shape, double range) {
      family.cases.push_back(
          {.op = op.name,
           .label = label,
           .inputs = std::vector<InputSpec>(op.num_inputs, F32(shape, -range, range)),
           .reference = [row = op.row](const ReferenceCall& call) { return MapRows(call, row); }});
    };
    add_case("odd", {5, 7}, 2.0);
    add_case("one", {5, 1}, 2.0);
    add_case("a row", {9}, 2.0);
    add_case("splits", {6, 6, 6}, 2.0);
    add_case("many columns", {3, 1531}, 2.0);
    family.cases.back().check_gradient = false;
    if (op.num_inputs == 1) {
      add_case("large numbers", {3, 40}, 200.0);
      family.cases.back().check_gradient = false;
      family.cases.back().tolerance = 2e-5;
    }
    const auto sized = [&](const char* label, const Shape& shape) {
      return Sized(op.name, label, std::vector<InputSpec>(op.num_inputs, F32(shape, -2.0, 2.0)));
    };
    family.large.push_back(sized("rows", {70, 3000}));
    family.bench.push_back(sized("rows", {2048, 1536}));
  }
  family.rejections = {
      {"softmax",
       {F32({})},
       {},
       "softmax: got a scalar, expected a dim to normalise along: x f32[]"},
      {"softmax_grad",
       {F32({2}), F32({3})},
       {},
       "softmax_grad: shapes differ: dy f32[2], y f32[3]"},
      {"log_softmax",
       {I64({2}, 5)},
       {},
       "log_softmax: x is not floating-point, convert with to(x, dtype): x i64[2]"},
      {"log_softmax_grad",
       {F32({2}), F32({3})},
       {},
       "log_softmax_grad: shapes differ: dy f32[2], y f32[3]"}};
  return family;
}

}  // namespace zg::testing
