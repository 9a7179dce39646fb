#include <cmath>

#include "tests/ops/op_case.h"

namespace zg::testing {
namespace {

// The channel of an element.
int64_t ChannelOf(const Shape& shape, int64_t index) {
  int64_t pixels = 1;
  for (int dim = 2; dim < shape.num_dims(); ++dim) pixels *= shape.dim(dim);
  return index / pixels % shape.dim(1);
}

ReferenceOutputs BatchNorm(const ReferenceCall& call) {
  const ReferenceTensor& x = call.inputs[0];
  const int64_t channels = x.shape.dim(1), size = x.shape.num_elements();
  const double count = static_cast<double>(size / channels);
  std::vector<double> y(size), mean(channels, 0.0), variance(channels, 0.0);
  for (int64_t i = 0; i < size; ++i) mean[ChannelOf(x.shape, i)] += x.values[i] / count;
  for (int64_t i = 0; i < size; ++i) {
    const int64_t channel = ChannelOf(x.shape, i);
    variance[channel] += std::pow(x.values[i] - mean[channel], 2) / count;
  }
  for (int64_t i = 0; i < size; ++i) {
    const int64_t channel = ChannelOf(x.shape, i);
    const double rstd = 1.0 / std::sqrt(variance[channel] + call.attributes.Float("epsilon"));
    y[i] = (x.values[i] - mean[channel]) * rstd * call.inputs[1].values[channel] +
           call.inputs[2].values[channel];
  }
  return {y, mean, variance};
}

ReferenceOutputs BatchNormGrad(const ReferenceCall& call) {
  const std::vector<double>& dy = call.inputs[0].values;
  const ReferenceTensor& x = call.inputs[1];
  const int64_t channels = x.shape.dim(1), size = x.shape.num_elements();
  const double count = static_cast<double>(size / channels);
  std::vector<double> dx(size), n(size), dgamma(channels, 0.0), dbeta(channels, 0.0);
  const auto rstd = [&](int64_t channel) {
    return 1.0 / std::sqrt(call.inputs[4].values[channel] + call.attributes.Float("epsilon"));
  };
  for (int64_t i = 0; i < size; ++i) {
    const int64_t channel = ChannelOf(x.shape, i);
    n[i] = (x.values[i] - call.inputs[3].values[channel]) * rstd(channel);
    dgamma[channel] += dy[i] * n[i];
    dbeta[channel] += dy[i];
  }
  for (int64_t i = 0; i < size; ++i) {
    const int64_t channel = ChannelOf(x.shape, i);
    dx[i] = call.inputs[2].values[channel] * rstd(channel) *
            (dy[i] - (dbeta[channel] + n[i] * dgamma[channel]) / count);
  }
  return {dx, dgamma, dbeta};
}

// Inputs 3 and 4 become the mean and variance of input 1.
void TakeStatistics(ReferenceCall& call) {
  const ReferenceOutputs forward =
      BatchNorm({{call.inputs[1], call.inputs[2], call.inputs[2]}, {{"epsilon", 1e-5}}, call.step});
  call.inputs[3].values = forward[1];
  call.inputs[4].values = forward[2];
}

void AddCases(std::vector<OpCase>* cases, const std::string& label, const Shape& x) {
  const Shape channels = {x.dim(1)};
  OpCase forward;
  forward.op = "batch_norm";
  forward.label = label;
  forward.inputs = {F32(x), F32(channels), F32(channels)};
  forward.reference = BatchNorm;
  forward.check_gradient = x.num_elements() < 300;
  OpCase backward;
  backward.op = "batch_norm_grad";
  backward.label = label;
  backward.inputs = {F32(x), F32(x), F32(channels), F32(channels), F32(channels)};
  backward.reference = BatchNormGrad;
  backward.prepare = TakeStatistics;
  backward.f32_inputs = {3, 4};
  cases->insert(cases->end(), {forward, backward});
}

void AddSizes(std::vector<OpCase>* cases, const std::string& label, const Shape& x) {
  const Shape channels = {x.dim(1)};
  const InputSpec statistics = F32(channels, 0.5, 2);
  cases->push_back(Sized("batch_norm", label, {F32(x), F32(channels), F32(channels)}));
  cases->push_back(Sized("batch_norm_grad", label,
                         {F32(x), F32(x), F32(channels), statistics, statistics}, {}, {3, 4}));
}

}  // namespace

FamilyCases BatchNormCases() {
  FamilyCases family;
  AddCases(&family.cases, "images", {3, 4, 5, 3});
  AddCases(&family.cases, "signals", {3, 5, 7});
  AddCases(&family.cases, "features", {9, 5});
  AddCases(&family.cases, "many features", {4, 37});
  AddCases(&family.cases, "rows of a vector", {3, 2, 8, 17});
  AddCases(&family.cases, "squares", {3, 2, 4, 4});
  AddCases(&family.cases, "splits", {2, 6, 3, 3});
  AddCases(&family.cases, "blocks of channels", {2, 5, 50, 60});
  AddCases(&family.cases, "blocks of features", {2, 1037});
  // The results bend less with a large variance, so that differences see their slope.
  for (OpCase& one : family.cases) {
    if (one.op == "batch_norm_grad") one.check_gradient = false;
  }
  for (const Shape& x : {Shape{3, 4, 5, 3}, Shape{9, 5}}) {
    AddCases(&family.cases, "large epsilon", x);
    (family.cases.end() - 2)->attributes = {{"epsilon", 1.0}};
    family.cases.back().attributes = {{"epsilon", 1.0}};
  }
  OpCase far;
  far.op = "batch_norm";
  far.label = "far from zero, large epsilon";
  far.inputs = {F32({4, 3, 6, 6}, 99.0, 101.0), F32({3}), F32({3})};
  far.attributes = {{"epsilon", 0.25}};
  far.reference = BatchNorm;
  far.tolerance = 1e-4;
  far.check_gradient = false;
  family.cases.push_back(far);
  family.rejections = {
      {"batch_norm",
       {F32({5}), F32({5}), F32({5})},
       {},
       "batch_norm: x has no channels, expected the dims (samples, channels, ...): x f32[5], "
       "gamma f32[5], beta f32[5]"},
      {"batch_norm",
       {F32({5, 7}), F32({7}), F32({5})},
       {},
       "batch_norm: gamma and beta do not fit the channels of x: x f32[5,7], gamma f32[7], "
       "beta f32[5]"},
      {"batch_norm",
       {F32({5, 7}), F32({7}), F32({7})},
       {{"epsilon", -1.0}},
       "batch_norm: epsilon is -1, expected 0 <= epsilon"},
      {"batch_norm_grad",
       {F32({7, 5}), F32({5, 7}), F32({7}), F32({7}), F32({7})},
       {},
       "batch_norm_grad: dy and x are not alike: dy f32[7,5], x f32[5,7], gamma f32[7], "
       "mean f32[7], variance f32[7]"},
      {"batch_norm_grad",
       {F32({5, 7}), F32({5, 7}), F32({7}), F32({5}), F32({7})},
       {},
       "batch_norm_grad: mean and variance are not one f32 per channel of x: dy f32[5,7], "
       "x f32[5,7], gamma f32[7], mean f32[5], variance f32[7]"},
  };
  AddSizes(&family.large, "images", {5, 9, 17, 19});
  AddSizes(&family.bench, "64x32x32", {32, 64, 32, 32});
  AddSizes(&family.bench, "512x4x4", {32, 512, 4, 4});
  return family;
}

}  // namespace zg::testing
