#include <algorithm>

#include "tests/ops/gelu_reference.h"
#include "tests/ops/op_case.h"

namespace zg::testing {
namespace {

ReferenceOutputs ReluReference(const ReferenceCall& call) {
  return MapElements(call, [](double x, double) { return std::max(x, 0.0); });
}
ReferenceOutputs ReluGradReference(const ReferenceCall& call) {
  return MapElements(call, [](double dy, double y) { return y > 0.0 ? dy : 0.0; });
}
ReferenceOutputs GeluReference(const ReferenceCall& call) {
  return MapElements(call, [](double x, double) { return Gelu(x); });
}
ReferenceOutputs GeluGradReference(const ReferenceCall& call) {
  return MapElements(call, [](double dy, double x) { return dy * GeluDerivative(x); });
}

// Differences must not step over relu's kink.
void MoveFromZero(ReferenceCall& call) {
  for (double& x : call.inputs[0].values) x += x < 0.0 ? -0.25 : 0.25;
}
// Input 1 is an output of relu: zeros and positive numbers.
void ClampSecond(ReferenceCall& call) {
  for (double& y : call.inputs[1].values) y = std::max(y, 0.0);
}

struct Op {
  const char* name;
  int num_inputs;
  double range;  // of the inputs
  ReferenceOutputs (*reference)(const ReferenceCall&);
  void (*prepare)(ReferenceCall&);
};

}  // namespace

FamilyCases ActivationCases() {
  FamilyCases family;
  const Op ops[] = {{"relu", 1, 1.0, ReluReference, MoveFromZero},
                    {"relu_grad", 2, 1.0, ReluGradReference, ClampSecond},
                    {"gelu", 1, 3.0, GeluReference, nullptr},
                    {"gelu_grad", 2, 3.0, GeluGradReference, nullptr}};
  for (const Op& op : ops) {
    const auto add_case = [&](const char* label, const Shape& shape, double range) {
      const InputSpec input = F32(shape, -range, range);
      family.cases.push_back({.op = op.name,
                              .label = label,
                              .inputs = std::vector<InputSpec>(op.num_inputs, input),
                              .reference = op.reference,
                              .prepare = op.prepare});
    };
    add_case("scalar", {}, op.range);
    add_case("odd", {5, 7}, op.range);
    add_case("splits", {6, 6, 6}, op.range);
    add_case("many elements", {3, 1531}, 20.0);
    family.cases.back().check_gradient = false;
  }
  family.rejections = {
      {"relu", {I64({2}, 5)}, {}, "relu: x is not floating-point: x i64[2]"},
      {"relu_grad", {F32({2}), F32({3})}, {}, "relu_grad: shapes differ: dy f32[2], y f32[3]"},
      {"gelu", {I64({2}, 5)}, {}, "gelu: x is not floating-point: x i64[2]"},
      {"gelu_grad", {F32({2}), F32({3})}, {}, "gelu_grad: shapes differ: dy f32[2], x f32[3]"}};
  return family;
}

}  // namespace zg::testing
