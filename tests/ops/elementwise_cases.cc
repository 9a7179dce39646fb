#include "tests/ops/op_case.h"

namespace zg::testing {
namespace {

ReferenceOutputs Add(const ReferenceCall& call) {
  return MapElements(call, [](double a, double b) { return a + b; });
}
ReferenceOutputs Subtract(const ReferenceCall& call) {
  return MapElements(call, [](double a, double b) { return a - b; });
}
ReferenceOutputs Multiply(const ReferenceCall& call) {
  return MapElements(call, [](double a, double b) { return a * b; });
}
ReferenceOutputs Scale(const ReferenceCall& call) {
  const double factor = call.attributes.Float("factor");
  return MapElements(call, [factor](double x, double) { return factor * x; });
}

struct Op {
  const char* name;
  int num_inputs;
  ir::Attributes attributes;
  ReferenceOutputs (*reference)(const ReferenceCall&);
};

}  // namespace

FamilyCases ElementwiseCases() {
  FamilyCases family;
  const Op ops[] = {{"add", 2, {}, Add},
                    {"subtract", 2, {}, Subtract},
                    {"multiply", 2, {}, Multiply},
                    {"scale", 1, {{"factor", -0.75}}, Scale}};
  for (const Op& op : ops) {
    const auto add_case = [&](const char* label, const Shape& shape) {
      family.cases.push_back({.op = op.name,
                              .label = label,
                              .inputs = std::vector<InputSpec>(op.num_inputs, F32(shape)),
                              .attributes = op.attributes,
                              .reference = op.reference});
    };
    add_case("scalar", {});
    add_case("odd", {5, 7});
    add_case("splits", {6, 6, 6});
    add_case("many elements", {3, 1531});
    family.cases.back().check_gradient = false;
  }
  family.rejections = {
      {"add", {F32({2, 3}), F32({3, 2})}, {}, "add: shapes differ: a f32[2,3], b f32[3,2]"},
      {"subtract", {F32({2}), F32({})}, {}, "subtract: shapes differ: a f32[2], b f32[]"},
      {"multiply",
       {F32({2}), I64({2}, 5)},
       {},
       "multiply: b is not floating-point: a f32[2], b i64[2]"},
      {"add", {F32({2}), {{DType::kBF16, {2}}}}, {}, "add: dtypes differ: a f32[2], b bf16[2]"},
      {"scale", {F32({2})}, {}, "scale: attribute 'factor' is missing"},
      {"scale", {I64({2}, 5)}, {{"factor", 2.0}}, "scale: x is not floating-point: x i64[2]"}};
  return family;
}

}  // namespace zg::testing
