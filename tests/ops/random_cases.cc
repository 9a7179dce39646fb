#include "framework/base/random.h"
#include "tests/ops/op_case.h"

namespace zg::testing {
namespace {

RandomKey KeyOf(const ReferenceCall& call) {
  RandomKey key{call.step.seed};
  for (int64_t fold : {call.step.step, call.step.micro_batch, call.attributes.Int("stream")}) {
    key = FoldIn(key, static_cast<uint64_t>(fold));
  }
  return key;
}

ReferenceOutputs Uniform(const ReferenceCall& call) {
  const double low = call.attributes.Float("low"), high = call.attributes.Float("high");
  std::vector<double> y;
  for (size_t i = 0; i < call.inputs[0].values.size(); ++i) {
    y.push_back(low + (high - low) * UniformAt(KeyOf(call), i));
  }
  return {y};
}

ReferenceOutputs Normal(const ReferenceCall& call) {
  std::vector<double> y;
  for (size_t i = 0; i < call.inputs[0].values.size(); ++i) {
    y.push_back(call.attributes.Float("mean") +
                call.attributes.Float("stddev") * NormalAt(KeyOf(call), i));
  }
  return {y};
}

}  // namespace

FamilyCases RandomCases() {
  FamilyCases family;
  const auto add = [&](const char* label, const Shape& shape) {
    family.cases.push_back({.op = "uniform",
                            .label = label,
                            .inputs = {F32(shape)},
                            .attributes = {{"low", -1.0}, {"high", 2.0}, {"stream", int64_t{3}}},
                            .reference = Uniform,
                            .parts_are_micro_batches = true});
    family.cases.push_back({.op = "normal",
                            .label = label,
                            .inputs = {F32(shape)},
                            .attributes = {{"mean", 0.5}, {"stddev", 2.0}, {"stream", int64_t{4}}},
                            .reference = Normal,
                            .parts_are_micro_batches = true});
  };
  add("odd", {5, 7});
  add("splits", {6, 3});
  add("many elements", {3, 1531});
  const ir::Attributes stream = {{"stream", int64_t{0}}};
  family.rejections = {
      {"uniform",
       {I64({5}, 3)},
       stream,
       "uniform: x is not floating-point, convert with to(x, dtype): x i64[5]"},
      {"uniform", {F32({5})}, {}, "uniform: attribute 'stream' is missing"},
      {"normal",
       {I64({5}, 3)},
       stream,
       "normal: x is not floating-point, convert with to(x, dtype): x i64[5]"},
  };
  family.large = {Sized("uniform", "odd rows", {F32({33, 1025})}, stream),
                  Sized("normal", "odd rows", {F32({33, 1025})}, stream)};
  family.bench = {Sized("uniform", "hidden", {F32({2048, 384})}, stream),
                  Sized("normal", "hidden", {F32({2048, 384})}, stream)};
  family.exact_on_gpu = {"uniform", "normal"};
  return family;
}

}  // namespace zg::testing
