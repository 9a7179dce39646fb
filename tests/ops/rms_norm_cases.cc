#include <cmath>

#include "tests/ops/op_case.h"

namespace zg::testing {
namespace {

ReferenceOutputs RmsNorm(const ReferenceCall& call) {
  const ReferenceTensor& x = call.inputs[0];
  const int64_t columns = Columns(x);
  std::vector<double> y, rrms;
  for (int64_t row = 0; row < RowsOf(x); ++row) {
    const double* const values = x.values.data() + row * columns;
    double average = 0.0;
    for (int64_t i = 0; i < columns; ++i) average += values[i] * values[i] / columns;
    rrms.push_back(1.0 / std::sqrt(average + call.attributes.Float("epsilon")));
    for (int64_t i = 0; i < columns; ++i) {
      y.push_back(values[i] * rrms.back() * call.inputs[1].values[i]);
    }
  }
  return {y, rrms};
}

ReferenceOutputs RmsNormGrad(const ReferenceCall& call) {
  const std::vector<double>& dy = call.inputs[0].values;
  const std::vector<double>& x = call.inputs[1].values;
  const std::vector<double>& weight = call.inputs[2].values;
  const int64_t columns = Columns(call.inputs[1]);
  std::vector<double> dx(x.size()), dweight(columns, 0.0);
  for (int64_t row = 0; row < RowsOf(call.inputs[1]); ++row) {
    const double rrms = call.inputs[3].values[row];
    double average = 0.0;  // of dy weight times the normalized x
    for (int64_t i = 0; i < columns; ++i) {
      const int64_t at = row * columns + i;
      average += dy[at] * weight[i] * x[at] * rrms / columns;
      dweight[i] += dy[at] * x[at] * rrms;
    }
    for (int64_t i = 0; i < columns; ++i) {
      const int64_t at = row * columns + i;
      dx[at] = rrms * (dy[at] * weight[i] - x[at] * rrms * average);
    }
  }
  AddLastInput(call, &dx);
  return {dx, dweight};
}

// Input 3 becomes the rrms of input 1.
void TakeStatistics(ReferenceCall& call) {
  const ReferenceOutputs forward =
      RmsNorm({{call.inputs[1], call.inputs[2]}, {{"epsilon", 1e-6}}, call.step});
  call.inputs[3].values = forward[1];
}

OpCase Forward(std::string label, const Shape& x, double epsilon = 1e-6) {
  return {.op = "rms_norm",
          .label = std::move(label),
          .inputs = {F32(x), F32({x.dim(-1)})},
          .attributes = {{"epsilon", epsilon}},
          .reference = RmsNorm};
}

OpCase Grad(std::string label, const Shape& x, const Shape& rows) {
  return {.op = "rms_norm_grad",
          .label = std::move(label),
          .inputs = {F32(x), F32(x), F32({x.dim(-1)}), F32(rows)},
          .reference = RmsNormGrad,
          .prepare = TakeStatistics,
          .f32_inputs = {3}};
}

}  // namespace

FamilyCases RmsNormCases() {
  FamilyCases family;
  family.cases = {Forward("odd", {5, 7}),
                  Forward("vector", {37}),
                  Forward("large epsilon", {3, 5}, 0.25),
                  Forward("splits", {6, 6, 9}),
                  Grad("odd", {5, 7}, {5}),
                  Grad("vector", {37}, {}),
                  Grad("many rows", {301, 19}, {301}),
                  Grad("splits", {6, 6, 9}, {6, 6}),
                  WithAddend(Grad("many rows", {301, 19}, {301}), {301, 19}),
                  WithAddend(Grad("vector", {37}, {}), {37}),
                  WithAddend(Grad("splits", {6, 6, 9}, {6, 6}), {6, 6, 9})};
  family.rejections = {
      {"rms_norm",
       {F32({5, 7}), F32({5})},
       {},
       "rms_norm: weight does not fit the last dim of x: x f32[5,7], weight f32[5]"},
      {"rms_norm",
       {F32({5, 7}), F32({7})},
       {{"epsilon", -1.0}},
       "rms_norm: epsilon is -1, expected 0 <= epsilon"},
      {"rms_norm_grad",
       {F32({5, 7}), F32({5, 7}), F32({7}), F32({7})},
       {},
       "rms_norm_grad: rrms is not one f32 per row of x: dy f32[5,7], x f32[5,7], weight f32[7], "
       "rrms f32[7]"}};
  const InputSpec rows = F32({200}, 0.5, 2);
  family.large = {
      Sized("rms_norm", "768", {F32({67, 768}), F32({768})}),
      Sized("rms_norm", "odd", {F32({9, 1001}), F32({1001})}),
      Sized("rms_norm_grad", "768", {F32({200, 768}), F32({200, 768}), F32({768}), rows}, {}, {3})};
  const InputSpec hidden = F32({2048, 384}), rrms = F32({2048}, 0.5, 2);
  family.bench = {Sized("rms_norm", "hidden", {hidden, F32({384})}),
                  Sized("rms_norm_grad", "hidden", {hidden, hidden, F32({384}), rrms}, {}, {3})};
  return family;
}

}  // namespace zg::testing
