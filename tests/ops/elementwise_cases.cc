#include <algorithm>
#include <cmath>

#include "tests/ops/gelu_reference.h"
#include "tests/ops/op_case.h"

namespace zg::testing {
namespace {

// Differences must not step over relu's kink.
void MoveFromZero(ReferenceCall& call) {
  for (double& x : call.inputs[0].values) x += x < 0.0 ? -0.25 : 0.25;
}
// Input 1 is an output of relu: zeros and positive numbers.
void ClampSecond(ReferenceCall& call) {
  for (double& y : call.inputs[1].values) y = std::max(y, 0.0);
}

double Sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }
double SiluDerivative(double x) { return Sigmoid(x) * (1.0 + x * (1.0 - Sigmoid(x))); }

struct Op {
  const char* name;
  int num_inputs;
  double (*formula)(double, double);  // of the first and the last input
  double range = 1.0;                 // of the inputs
  ir::Attributes attributes = {};
  void (*prepare)(ReferenceCall&) = nullptr;
};

const Op kOps[] = {
    {"add", 2, [](double a, double b) { return a + b; }},
    {"subtract", 2, [](double a, double b) { return a - b; }},
    {"multiply", 2, [](double a, double b) { return a * b; }},
    {"scale", 1, [](double x, double) { return -0.75 * x; }, 1.0, {{"factor", -0.75}}},
    {"relu", 1, [](double x, double) { return std::max(x, 0.0); }, 1.0, {}, MoveFromZero},
    {"relu_grad", 2, [](double dy, double y) { return y > 0.0 ? dy : 0.0; }, 1.0, {}, ClampSecond},
    {"gelu", 1, [](double x, double) { return Gelu(x); }, 3.0},
    {"gelu_grad", 2, [](double dy, double x) { return dy * GeluDerivative(x); }, 3.0},
    {"silu", 1, [](double x, double) { return x * Sigmoid(x); }, 3.0},
    {"silu_grad", 2, [](double dy, double x) { return dy * SiluDerivative(x); }, 3.0},
};

}  // namespace

FamilyCases ElementwiseCases() {
  FamilyCases family;
  for (const Op& op : kOps) {
    const auto add_case = [&](const char* label, const Shape& shape, double range) {
      const InputSpec input = F32(shape, -range, range);
      family.cases.push_back(
          {.op = op.name,
           .label = label,
           .inputs = std::vector<InputSpec>(op.num_inputs, input),
           .attributes = op.attributes,
           .reference = [formula = op.formula](
                            const ReferenceCall& call) { return MapElements(call, formula); },
           .prepare = op.prepare});
    };
    add_case("scalar", {}, op.range);
    add_case("odd", {5, 7}, op.range);
    add_case("splits", {6, 6, 6}, op.range);
    add_case("many elements", {3, 1531}, 20.0 * op.range / 3.0);
    family.cases.back().check_gradient = false;
    const auto sized = [&](const char* label, const Shape& shape) {
      const InputSpec input = F32(shape, -2.0 * op.range, 2.0 * op.range);
      return Sized(op.name, label, std::vector<InputSpec>(op.num_inputs, input), op.attributes);
    };
    family.large.push_back(sized("many blocks", {70001}));
    family.large.push_back(sized("odd rows", {257, 129}));
    family.bench.push_back(sized("wide", {2048, 1536}));
    family.exact_on_gpu.push_back(op.name);
  }
  family.rejections = {
      {"add", {F32({2, 3}), F32({3, 2})}, {}, "add: shapes differ: a f32[2,3], b f32[3,2]"},
      {"add", {F32({2}), {{DType::kBF16, {2}}}}, {}, "add: dtypes differ: a f32[2], b bf16[2]"},
      {"subtract", {F32({2}), F32({})}, {}, "subtract: shapes differ: a f32[2], b f32[]"},
      {"multiply",
       {F32({2}), I64({2}, 5)},
       {},
       "multiply: b is not floating-point: a f32[2], b i64[2]"},
      {"scale", {F32({2})}, {}, "scale: attribute 'factor' is missing"},
      {"scale", {I64({2}, 5)}, {{"factor", 2.0}}, "scale: x is not floating-point: x i64[2]"},
      {"relu", {I64({2}, 5)}, {}, "relu: x is not floating-point: x i64[2]"},
      {"relu_grad", {F32({2}), F32({3})}, {}, "relu_grad: shapes differ: dy f32[2], y f32[3]"},
      {"gelu", {I64({2}, 5)}, {}, "gelu: x is not floating-point: x i64[2]"},
      {"gelu_grad", {F32({2}), F32({3})}, {}, "gelu_grad: shapes differ: dy f32[2], x f32[3]"},
      {"silu", {I64({2}, 5)}, {}, "silu: x is not floating-point: x i64[2]"},
      {"silu_grad", {F32({2}), F32({3})}, {}, "silu_grad: shapes differ: dy f32[2], x f32[3]"}};
  return family;
}

}  // namespace zg::testing
