#include <fmt/format.h>

#include <cmath>

#include "tests/ops/op_case.h"

namespace zg::testing {
namespace {

// m = 0.9 m + g;  v = max(v, g^2);  p = p - lr / (1 - e^-t) (m / sqrt(v) + weight_decay p)
// Inputs of the program: 0 p, 1 g, 2 m, 3 v, 4 lr, 5 weight_decay, 6 t.
constexpr char kProgram[] =
    "t0=scale(i2,factor=0.9);t1=add(t0,i1);t2=square(i1);t3=maximum(i3,t2);t4=sqrt(t3);"
    "t5=divide(t1,t4);t6=multiply(i0,i5);t7=add(t5,t6);t8=scale(i6,factor=-1.0);t9=exp(t8);"
    "t10=scale(t9,factor=-1.0);t11=shift(t10,offset=1.0);t12=divide(i4,t11);t13=multiply(t7,t12);"
    "t14=subtract(i0,t13)";

ir::Attributes Attributes() {
  return {{"lr", 0.1},
          {"weight_decay", 0.25},
          {"program", std::string(kProgram)},
          {"results", std::vector<int64_t>{14, 1, 3}}};
}

ReferenceOutputs Rule(const ReferenceCall& call) {
  const bool has_control = call.inputs.size() == 5;
  const double factor = has_control ? call.inputs[4].values[0] : 1.0;
  const double t = has_control ? call.inputs[4].values[1] : static_cast<double>(call.step.step);
  std::vector<double> p = call.inputs[0].values;
  std::vector<double> m = call.inputs[2].values;
  std::vector<double> v = call.inputs[3].values;
  if (factor == 0.0) return {p, m, v};
  const double lr = 0.1 * call.step.lr_factor / (1.0 - std::exp(-t));
  for (size_t i = 0; i < p.size(); ++i) {
    const double g = factor * call.inputs[1].values[i];
    m[i] = 0.9 * m[i] + g;
    v[i] = std::max(v[i], g * g);
    p[i] -= lr * (m[i] / std::sqrt(v[i]) + 0.25 * p[i]);
  }
  return {p, m, v};
}

// One state, which is not read: p - lr g, and g.
ReferenceOutputs Plain(const ReferenceCall& call) {
  std::vector<double> p = call.inputs[0].values;
  for (size_t i = 0; i < p.size(); ++i) {
    p[i] -= 0.1 * call.step.lr_factor * call.inputs[1].values[i];
  }
  return {p, call.inputs[1].values};
}

Rejection Rejected(const std::string& program, std::vector<int64_t> results, std::string message) {
  return {"elementwise_update",
          {F32({5}), F32({5})},
          {{"lr", 0.1}, {"weight_decay", 0.0}, {"program", program}, {"results", results}},
          std::move(message)};
}

}  // namespace

FamilyCases ElementwiseUpdateCases() {
  FamilyCases family;
  for (const Shape& shape : {Shape{}, Shape{5, 7}, Shape{6, 6, 6}, Shape{4603}}) {
    OpCase op_case = {.op = "elementwise_update",
                      .label = shape.ToString(),
                      .inputs = {F32(shape), F32(shape), F32(shape), F32(shape, 0.1, 1.0)},
                      .attributes = Attributes(),
                      .reference = Rule,
                      .f32_inputs = {0, 2, 3}};
    family.cases.push_back(op_case);
    for (const double factor : {0.75, 0.0}) {
      OpCase controlled = op_case;
      controlled.label += fmt::format(", factor {}", factor);
      controlled.inputs.push_back(F32({2}));
      controlled.f32_inputs.push_back(4);
      controlled.prepare = [factor](ReferenceCall& call) {
        call.inputs.back().values = {factor, 7.0};
      };
      family.cases.push_back(std::move(controlled));
    }
  }
  family.cases.push_back(
      {.op = "elementwise_update",
       .label = "a state that is not read",
       .inputs = {F32({18}), F32({18}), F32({18})},
       .attributes = {{"lr", 0.1},
                      {"weight_decay", 0.0},
                      {"program", std::string("t0=multiply(i1,i3);t1=subtract(i0,t0);"
                                              "t2=scale(i1,factor=1.0)")},
                      {"results", std::vector<int64_t>{1, 2}}},
       .reference = Plain,
       .f32_inputs = {0, 2}});
  family.rejections = {
      Rejected(
          "t0=softmax(i0)", {0},
          "fused_elementwise: program \"t0=softmax(i0)\": \"softmax\" is not an elementwise op"),
      Rejected(
          "t0=add(i0,i1)", {},
          "elementwise_update: got 0 results, expected the new parameter and at most 4 states"),
      Rejected("t0=add(i0,i1)", {1}, "fused_elementwise: program \"t0=add(i0,i1)\": it has no t1"),
      Rejected("t0=add(i2,i4)", {0},
               "elementwise_update: result t0 is a scalar, expected elements"),
      Rejected("t0=gelu(i2);t1=multiply(t0,i1)", {1},
               "elementwise_update: gelu is not computed for a scalar; use arithmetic, exp, log, "
               "sqrt, minimum or maximum"),
      {"elementwise_update",
       {F32({5}), F32({5}), F32({7}), F32({5})},
       Attributes(),
       "elementwise_update: shapes differ: p f32[5], g f32[5], m f32[7], v f32[5]"},
      {"elementwise_update",
       {F32({5}), F32({5})},
       Attributes(),
       "elementwise_update: got 2 inputs, expected p, g, 2 states, and perhaps the control"}};
  family.large = {Sized("elementwise_update", "many blocks",
                        {F32({70003}), F32({70003}), F32({70003}), F32({70003}, 0.1, 1.0)},
                        Attributes(), {0, 2, 3})};
  const InputSpec bucket = F32({4 << 20}, 0.01, 1.0);
  family.bench = {Sized("elementwise_update", "bucket", {bucket, bucket, bucket, bucket},
                        Attributes(), {0, 2, 3})};
  return family;
}

}  // namespace zg::testing
