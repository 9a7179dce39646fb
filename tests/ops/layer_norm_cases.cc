#include <fmt/format.h>

#include <cmath>

#include "tests/ops/op_case.h"

namespace zg::testing {
namespace {

ReferenceOutputs LayerNorm(const ReferenceCall& call) {
  const ReferenceTensor& x = call.inputs[0];
  const int64_t columns = Columns(x);
  const double epsilon = call.attributes.Float("epsilon");
  std::vector<double> y, means, rstds;
  for (int64_t row = 0; row < RowsOf(x); ++row) {
    const double* const values = x.values.data() + row * columns;
    double mean = 0.0;
    for (int64_t i = 0; i < columns; ++i) mean += values[i] / columns;
    double variance = 0.0;
    for (int64_t i = 0; i < columns; ++i) variance += std::pow(values[i] - mean, 2) / columns;
    const double rstd = 1.0 / std::sqrt(variance + epsilon);
    for (int64_t i = 0; i < columns; ++i) {
      y.push_back((values[i] - mean) * rstd * call.inputs[1].values[i] + call.inputs[2].values[i]);
    }
    means.push_back(mean);
    rstds.push_back(rstd);
  }
  return {y, means, rstds};
}

ReferenceOutputs LayerNormGrad(const ReferenceCall& call) {
  const std::vector<double>& dy = call.inputs[0].values;
  const std::vector<double>& x = call.inputs[1].values;
  const std::vector<double>& gamma = call.inputs[2].values;
  const int64_t columns = Columns(call.inputs[1]);
  std::vector<double> dx(x.size()), dgamma(columns, 0.0), dbeta(columns, 0.0);
  for (int64_t row = 0; row < RowsOf(call.inputs[1]); ++row) {
    const double mean = call.inputs[3].values[row];
    const double rstd = call.inputs[4].values[row];
    double average = 0.0;             // of dy gamma
    double average_normalized = 0.0;  // of dy gamma times the normalized x
    for (int64_t i = 0; i < columns; ++i) {
      const int64_t at = row * columns + i;
      const double normalized = (x[at] - mean) * rstd;
      average += dy[at] * gamma[i] / columns;
      average_normalized += dy[at] * gamma[i] * normalized / columns;
      dgamma[i] += dy[at] * normalized;
      dbeta[i] += dy[at];
    }
    for (int64_t i = 0; i < columns; ++i) {
      const int64_t at = row * columns + i;
      const double normalized = (x[at] - mean) * rstd;
      dx[at] = rstd * (dy[at] * gamma[i] - average - normalized * average_normalized);
    }
  }
  AddLastInput(call, &dx);
  if (!call.attributes.Bool("sums")) return {dx, dgamma, dbeta};
  std::vector<double> sums(columns, 0.0);
  for (size_t i = 0; i < dx.size(); ++i) sums[i % columns] += dx[i];
  return {dx, dgamma, dbeta, sums};
}

// Inputs 3 and 4 become the mean and rstd of input 1.
void TakeStatistics(ReferenceCall& call) {
  const ReferenceOutputs forward =
      LayerNorm({{call.inputs[1], call.inputs[2], call.inputs[2]}, {{"epsilon", 1e-5}}, call.step});
  call.inputs[3].values = forward[1];
  call.inputs[4].values = forward[2];
}

OpCase Grad(std::string label, const Shape& x, const Shape& rows) {
  const Shape channels = {x.dim(-1)};
  return {.op = "layer_norm_grad",
          .label = std::move(label),
          .inputs = {F32(x), F32(x), F32(channels), F32(rows), F32(rows)},
          .reference = LayerNormGrad,
          .prepare = TakeStatistics,
          .f32_inputs = {3, 4}};
}

// With the sum over rows of dx.
OpCase Sums(OpCase grad) {
  grad.label += ", with sums";
  grad.attributes.Set("sums", true);
  grad.rounds_within = true;
  return grad;
}

}  // namespace

FamilyCases LayerNormCases() {
  FamilyCases family;
  family.cases = {
      {.op = "layer_norm",
       .label = "odd",
       .inputs = {F32({5, 7}), F32({7}), F32({7})},
       .reference = LayerNorm},
      {.op = "layer_norm",
       .label = "vector",
       .inputs = {F32({37}), F32({37}), F32({37})},
       .reference = LayerNorm},
      {.op = "layer_norm",
       .label = "large epsilon",
       .inputs = {F32({3, 5}), F32({5}), F32({5})},
       .attributes = {{"epsilon", 0.25}},
       .reference = LayerNorm},
      {.op = "layer_norm",
       .label = "far from zero",
       .inputs = {F32({3, 131}, 99.0, 101.0), F32({131}), F32({131})},
       .reference = LayerNorm,
       .tolerance = 1e-4,
       .check_gradient = false},
      {.op = "layer_norm",
       .label = "splits",
       .inputs = {F32({6, 6, 9}), F32({9}), F32({9})},
       .reference = LayerNorm},
      Grad("odd", {5, 7}, {5}),
      Grad("vector", {37}, {}),
      Grad("many rows", {301, 19}, {301}),
      Grad("splits", {6, 6, 9}, {6, 6}),
      Sums(Grad("many rows", {301, 19}, {301})),
      Sums(Grad("splits", {6, 6, 9}, {6, 6})),
      WithAddend(Grad("many rows", {301, 19}, {301}), {301, 19}),
      WithAddend(Grad("splits", {6, 6, 9}, {6, 6}), {6, 6, 9}),
      WithAddend(Sums(Grad("odd", {5, 7}, {5})), {5, 7}),
      WithAddend(Sums(Grad("vector", {37}, {})), {37}),
      WithAddend(Sums(Grad("splits", {6, 6, 9}, {6, 6})), {6, 6, 9}),
  };
  family.rejections = {
      {"layer_norm",
       {F32({5, 7}), F32({7}), F32({5})},
       {},
       "layer_norm: gamma and beta do not fit the last dim of x: x f32[5,7], gamma f32[7], "
       "beta f32[5]"},
      {"layer_norm",
       {F32({5, 7}), F32({7}), F32({7})},
       {{"epsilon", -1.0}},
       "layer_norm: epsilon is -1, expected 0 <= epsilon"},
      {"layer_norm_grad",
       {F32({5, 7}), F32({5, 7}), F32({7}), F32({5}), F32({7})},
       {},
       "layer_norm_grad: mean and rstd are not one f32 per row of x: dy f32[5,7], x f32[5,7], "
       "gamma f32[7], mean f32[5], rstd f32[7]"},
      {"layer_norm_grad",
       {F32({7, 5}), F32({5, 7}), F32({7}), F32({5}), F32({5})},
       {},
       "layer_norm_grad: dy and x are not alike: dy f32[7,5], x f32[5,7], gamma f32[7], "
       "mean f32[5], rstd f32[5]"},
  };
  family.large = {
      Sized("layer_norm", "768", {F32({67, 768}), F32({768}), F32({768})}),
      Sized("layer_norm", "odd", {F32({9, 1001}), F32({1001}), F32({1001})}),
      Sized("layer_norm_grad", "768",
            {F32({200, 768}), F32({200, 768}), F32({768}), F32({200}), F32({200}, 0.5, 2)}, {},
            {3, 4})};
  // Read once on a GPU, in whole packs and in single elements; and wider than its blocks.
  const ir::Attributes all = {{"adds", true}, {"sums", true}};
  for (const int64_t columns : {int64_t{768}, int64_t{301}, int64_t{1001}, int64_t{4104}}) {
    const int64_t rows = columns > 768 ? 3 : 21;
    const InputSpec x = F32({rows, columns}), mean = F32({rows}), rstd = F32({rows}, 0.5, 2);
    family.large.push_back(Sized("layer_norm_grad", fmt::format("all of {}", columns),
                                 {x, x, F32({columns}), mean, rstd, x}, all, {3, 4}));
  }
  const InputSpec hidden = F32({2048, 384}), channels = F32({384}), rows = F32({2048}, 0.5, 2);
  family.bench = {
      Sized("layer_norm", "hidden", {hidden, channels, channels}),
      Sized("layer_norm_grad", "hidden", {hidden, hidden, channels, rows, rows}, {}, {3, 4})};
  return family;
}

}  // namespace zg::testing
