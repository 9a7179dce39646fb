#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tests/ops/broadcast_reference.h"
#include "tests/ops/gelu_reference.h"
#include "tests/ops/op_case.h"
#include "tests/ops/special_reference.h"

namespace zg::testing {
namespace {

// Differences must not cross relu's kink.
void MoveFromZero(ReferenceCall& call) {
  for (double& x : call.inputs[0].values) x += x < 0.0 ? -0.25 : 0.25;
}
void MoveBothFromZero(ReferenceCall& call) {
  MoveFromZero(call);
  for (double& x : call.inputs.back().values) x += x < 0.0 ? -0.25 : 0.25;
}
void MakePositive(ReferenceCall& call) {
  for (double& x : call.inputs.back().values) x = std::abs(x) + 0.5;
}
void MakeFirstPositive(ReferenceCall& call) {
  for (double& x : call.inputs[0].values) x = std::min(std::abs(x), 2.0) + 0.5;
}
// No two neighbouring elements are closer than a difference's step.
void MoveApart(ReferenceCall& call) {
  std::vector<double>& a = call.inputs[0].values;
  std::vector<double>& b = call.inputs[1].values;
  for (double& x : a) x = std::floor(x * 4.0) / 4.0;
  for (double& x : b) x = std::floor(x * 4.0) / 4.0 + 0.125;
}
// Nor does a difference's step reach the other.
void MoveFarApart(ReferenceCall& call) {
  for (double& x : call.inputs[0].values) x = std::floor(x * 2.0) / 2.0;
  for (double& x : call.inputs[1].values) x = std::floor(x * 2.0) / 2.0 + 0.25;
}
// Differences must not cross a whole number or one and a half.
void MoveFromSteps(ReferenceCall& call) {
  for (double& x : call.inputs[0].values) x = std::floor(x * 2.0) / 2.0 + 0.25;
}
void MakeSomeInfinite(ReferenceCall& call) {
  std::vector<double>& x = call.inputs[0].values;
  for (size_t i = 0; i < x.size(); i += 3) x[i] = i % 2 == 0 ? INFINITY : NAN;
}
// Within 1/4, where erfinv is not much curved.
void MakeFractions(ReferenceCall& call) {
  for (double& x : call.inputs[0].values) x /= 4.0 * (1.0 + std::abs(x));
}
double Sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }
double Softplus(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }
double NormalDensity(double x) { return std::exp(-x * x / 2.0) / std::sqrt(2.0 * M_PI); }
double NormalShare(double x) { return (1.0 + std::erf(x / std::sqrt(2.0))) / 2.0; }
double SiluDerivative(double x) { return Sigmoid(x) * (1.0 + x * (1.0 - Sigmoid(x))); }

// The formula of two operands that are broadcast.
ReferenceOutputs MapBroadcast(const ReferenceCall& call, double (*formula)(double, double)) {
  const Shape shape = BroadcastShape(call.inputs);
  std::vector<double> y = BroadcastTo(shape, call.inputs[0]);
  const std::vector<double> b = BroadcastTo(shape, call.inputs[1]);
  for (size_t i = 0; i < y.size(); ++i) y[i] = formula(y[i], b[i]);
  return {y};
}

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
    {"divide", 2, [](double a, double b) { return a / b; }, 1.0, {}, MakePositive},
    {"finite_or",
     2,
     [](double a, double b) { return std::isfinite(a) ? a : b; },
     1.0,
     {},
     MakeSomeInfinite},
    {"maximum", 2, [](double a, double b) { return std::max(a, b); }, 1.0, {}, MoveApart},
    {"minimum", 2, [](double a, double b) { return std::min(a, b); }, 1.0, {}, MoveApart},
    {"share_of_larger",
     2,
     [](double a, double b) { return a > b ? 1.0 : 0.0; },
     1.0,
     {},
     MoveFarApart},
    {"scale", 1, [](double x, double) { return -0.75 * x; }, 1.0, {{"factor", -0.75}}},
    {"shift", 1, [](double x, double) { return x + 0.375; }, 1.0, {{"offset", 0.375}}},
    {"reciprocal", 1, [](double x, double) { return 1.0 / x; }, 1.0, {}, MakePositive},
    {"square", 1, [](double x, double) { return x * x; }},
    {"sqrt", 1, [](double x, double) { return std::sqrt(x); }, 1.0, {}, MakePositive},
    {"rsqrt", 1, [](double x, double) { return 1.0 / std::sqrt(x); }, 1.0, {}, MakePositive},
    {"exp", 1, [](double x, double) { return std::exp(x); }},
    {"log", 1, [](double x, double) { return std::log(x); }, 1.0, {}, MakePositive},
    {"expm1", 1, [](double x, double) { return std::expm1(x); }},
    {"log1p", 1, [](double x, double) { return std::log1p(x); }, 1.0, {}, MakePositive},
    {"floor", 1, [](double x, double) { return std::floor(x); }, 3.0, {}, MoveFromSteps},
    {"round", 1, [](double x, double) { return std::nearbyint(x); }, 3.0, {}, MoveFromSteps},
    {"power",
     1,
     [](double x, double) { return std::pow(x, 2.5); },
     1.0,
     {{"exponent", 2.5}},
     MakePositive},
    {"power_grad",
     2,
     [](double dy, double x) { return dy * 2.5 * std::pow(x, 1.5); },
     1.0,
     {{"exponent", 2.5}},
     MakePositive},
    {"pow", 2, [](double a, double b) { return std::pow(a, b); }, 1.0, {}, MakeFirstPositive},
    {"pow_slope",
     2,
     [](double a, double b) { return b * std::pow(a, b - 1.0); },
     1.0,
     {},
     MakeFirstPositive},
    {"pow_exponent_slope",
     2,
     [](double power, double a) { return power * std::log(a); },
     1.0,
     {},
     MakePositive},
    {"abs", 1, [](double x, double) { return std::abs(x); }, 1.0, {}, MoveFromZero},
    {"sign", 1, [](double x, double) { return x > 0.0 ? 1.0 : -1.0; }, 1.0, {}, MoveFromZero},
    {"sin", 1, [](double x, double) { return std::sin(x); }, 3.0},
    {"cos", 1, [](double x, double) { return std::cos(x); }, 3.0},
    {"atan", 1, [](double x, double) { return std::atan(x); }, 3.0},
    {"atan2", 2, [](double a, double b) { return std::atan2(a, b); }, 1.0, {}, MakePositive},
    {"atan2_slope",
     2,
     [](double a, double b) { return b / (a * a + b * b); },
     1.0,
     {},
     MakePositive},
    {"tanh", 1, [](double x, double) { return std::tanh(x); }, 3.0},
    {"tanh_grad", 2, [](double dy, double y) { return dy * (1.0 - y * y); }},
    {"sigmoid", 1, [](double x, double) { return Sigmoid(x); }, 3.0},
    {"sigmoid_grad", 2, [](double dy, double y) { return dy * y * (1.0 - y); }},
    {"softplus", 1, [](double x, double) { return Softplus(x); }, 3.0},
    {"erf", 1, [](double x, double) { return std::erf(x); }, 3.0},
    {"leaky_relu",
     1,
     [](double x, double) { return x > 0.0 ? x : 0.1 * x; },
     1.0,
     {{"slope", 0.1}},
     MoveFromZero},
    {"leaky_relu_grad",
     2,
     [](double dy, double x) { return x > 0.0 ? dy : 0.1 * dy; },
     1.0,
     {{"slope", 0.1}},
     MoveBothFromZero},
    {"elu",
     1,
     [](double x, double) { return x > 0.0 ? x : 0.5 * std::expm1(x); },
     1.0,
     {{"alpha", 0.5}},
     MoveFromZero},
    {"elu_grad",
     2,
     [](double dy, double x) { return x > 0.0 ? dy : dy * 0.5 * std::exp(x); },
     1.0,
     {{"alpha", 0.5}},
     MoveBothFromZero},
    {"clamp_min",
     1,
     [](double x, double) { return std::max(x, 0.0); },
     1.0,
     {{"low", 0.0}},
     MoveFromZero},
    {"clamp_min_grad",
     2,
     [](double dy, double x) { return x >= 0.0 ? dy : 0.0; },
     1.0,
     {{"low", 0.0}},
     MoveBothFromZero},
    {"clamp_max",
     1,
     [](double x, double) { return std::min(x, 0.0); },
     1.0,
     {{"high", 0.0}},
     MoveFromZero},
    {"clamp_max_grad",
     2,
     [](double dy, double x) { return x <= 0.0 ? dy : 0.0; },
     1.0,
     {{"high", 0.0}},
     MoveBothFromZero},
    {"erfc", 1, [](double x, double) { return std::erfc(x); }, 3.0},
    {"erfcx", 1, [](double x, double) { return Erfcx(x); }, 1.0, {}, MakePositive},
    {"erfinv", 1, [](double x, double) { return Erfinv(x); }, 3.0, {}, MakeFractions},
    {"lgamma", 1, [](double x, double) { return std::lgamma(x); }, 3.0, {}, MakePositive},
    {"digamma", 1, [](double x, double) { return Digamma(x); }, 3.0, {}, MakePositive},
    {"trigamma", 1, [](double x, double) { return Trigamma(x); }, 3.0, {}, MakePositive},
    {"gelu_erf", 1, [](double x, double) { return x * NormalShare(x); }, 3.0},
    {"gelu_erf_grad", 2,
     [](double dy, double x) { return dy * (NormalShare(x) + x * NormalDensity(x)); }, 3.0},
    {"relu", 1, [](double x, double) { return std::max(x, 0.0); }, 1.0, {}, MoveFromZero},
    {"relu_grad",
     2,
     [](double dy, double y) { return y > 0.0 ? dy : 0.0; },
     1.0,
     {},
     MoveBothFromZero},
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
    if (op.num_inputs == 2) {
      const auto add_broadcast = [&](const char* label, const Shape& a, const Shape& b) {
        add_case(label, a, op.range);
        family.cases.back().inputs[1] = F32(b, -op.range, op.range);
        family.cases.back().reference = [formula = op.formula](const ReferenceCall& call) {
          return MapBroadcast(call, formula);
        };
      };
      add_broadcast("a row", {5, 7}, {7});
      add_broadcast("a column", {5, 7}, {5, 1});
      add_broadcast("a scalar", {}, {5, 7});
      add_broadcast("both", {5, 1, 3}, {7, 1});
      add_broadcast("long rows", {3, 300}, {300});
      family.cases.back().check_gradient = false;
      add_broadcast("rows with numbers", {3, 300}, {3, 1});
      family.cases.back().check_gradient = false;
      add_broadcast("short rows of a piece", {3, 5, 32}, {5, 1});
      family.cases.back().check_gradient = false;
      add_broadcast("products of rows", {3, 70, 1}, {3, 1, 48});
      family.cases.back().check_gradient = false;
      add_broadcast("splits of one", {6, 6, 6}, {6, 6});
      add_broadcast("splits of the other", {6}, {6, 6, 6});
      add_broadcast("splits of some", {6, 1, 6}, {6, 6, 1});
      add_broadcast("splits of a middle", {6, 1, 6}, {6, 1});
    }
    const auto sized = [&](const char* label, const Shape& shape) {
      const InputSpec input = F32(shape, -2.0 * op.range, 2.0 * op.range);
      return Sized(op.name, label, std::vector<InputSpec>(op.num_inputs, input), op.attributes);
    };
    family.large.push_back(sized("many blocks", {70001}));
    family.large.push_back(sized("odd rows", {257, 129}));
    family.bench.push_back(sized("wide", {2048, 1536}));
    family.exact_on_gpu.push_back(op.name);
  }
  family.bench.push_back(
      Sized("multiply", "products of rows", {F32({2048, 96, 1}), F32({2048, 1, 16})}));
  family.rejections = {
      {"add",
       {F32({2, 3}), F32({3, 2})},
       {},
       "add: shapes differ, and cannot be broadcast to one: a f32[2,3], b f32[3,2]"},
      {"add", {F32({2}), {{DType::kBF16, {2}}}}, {}, "add: dtypes differ: a f32[2], b bf16[2]"},
      {"subtract",
       {F32({2}), F32({2, 3})},
       {},
       "subtract: shapes differ, and cannot be broadcast to one: a f32[2], b f32[2,3]"},
      {"multiply",
       {F32({2}), I64({2}, 5)},
       {},
       "multiply: b is not floating-point, convert with to(x, dtype): a f32[2], b i64[2]"},
      {"scale", {F32({2})}, {}, "scale: attribute 'factor' is missing"},
      {"scale",
       {I64({2}, 5)},
       {{"factor", 2.0}},
       "scale: x is not floating-point, convert with to(x, dtype): x i64[2]"},
      {"power", {F32({2})}, {}, "power: attribute 'exponent' is missing"},
      {"power_grad", {F32({2}), F32({2})}, {}, "power_grad: attribute 'exponent' is missing"},
      {"pow",
       {F32({2}), I64({2}, 5)},
       {},
       "pow: b is not floating-point, convert with to(x, dtype): a f32[2], b i64[2]"},
      {"pow_slope",
       {F32({2}), I64({2}, 5)},
       {},
       "pow_slope: b is not floating-point, convert with to(x, dtype): a f32[2], b i64[2]"},
      {"pow_exponent_slope",
       {F32({2}), I64({2}, 5)},
       {},
       "pow_exponent_slope: a is not floating-point, convert with to(x, dtype): power f32[2], a i64[2]"},
      {"atan2",
       {F32({2}), F32({3})},
       {},
       "atan2: shapes differ, and cannot be broadcast to one: a f32[2], b f32[3]"},
      {"atan2_slope",
       {F32({2}), I64({2}, 5)},
       {},
       "atan2_slope: b is not floating-point, convert with to(x, dtype): a f32[2], b i64[2]"},
      {"shift", {F32({2})}, {}, "shift: attribute 'offset' is missing"},
      {"leaky_relu", {F32({2})}, {}, "leaky_relu: attribute 'slope' is missing"},
      {"elu", {F32({2})}, {}, "elu: attribute 'alpha' is missing"},
      {"clamp_min", {F32({2})}, {}, "clamp_min: attribute 'low' is missing"},
      {"clamp_max", {F32({2})}, {}, "clamp_max: attribute 'high' is missing"},
      {"divide",
       {F32({2}), F32({3})},
       {},
       "divide: shapes differ, and cannot be broadcast to one: a f32[2], b f32[3]"},
      {"finite_or",
       {F32({2}), F32({3})},
       {},
       "finite_or: shapes differ, and cannot be broadcast to one: x f32[2], other f32[3]"},
      {"maximum",
       {F32({2}), F32({3})},
       {},
       "maximum: shapes differ, and cannot be broadcast to one: a f32[2], b f32[3]"},
      {"minimum",
       {F32({2}), F32({3})},
       {},
       "minimum: shapes differ, and cannot be broadcast to one: a f32[2], b f32[3]"},
      {"share_of_larger",
       {F32({2}), F32({3})},
       {},
       "share_of_larger: shapes differ, and cannot be broadcast to one: a f32[2], b f32[3]"},
      {"tanh_grad",
       {F32({2}), F32({3})},
       {},
       "tanh_grad: shapes differ, and cannot be broadcast to one: dy f32[2], y f32[3]"},
      {"sigmoid_grad",
       {F32({2}), F32({3})},
       {},
       "sigmoid_grad: shapes differ, and cannot be broadcast to one: dy f32[2], y f32[3]"},
      {"gelu_erf_grad",
       {F32({2}), F32({3})},
       {},
       "gelu_erf_grad: shapes differ, and cannot be broadcast to one: dy f32[2], x f32[3]"},
      {"leaky_relu_grad",
       {F32({2}), F32({2})},
       {},
       "leaky_relu_grad: attribute 'slope' is missing"},
      {"elu_grad", {F32({2}), F32({2})}, {}, "elu_grad: attribute 'alpha' is missing"},
      {"clamp_min_grad", {F32({2}), F32({2})}, {}, "clamp_min_grad: attribute 'low' is missing"},
      {"clamp_max_grad", {F32({2}), F32({2})}, {}, "clamp_max_grad: attribute 'high' is missing"},
      {"relu_grad",
       {F32({2}), F32({3})},
       {},
       "relu_grad: shapes differ, and cannot be broadcast to one: dy f32[2], y f32[3]"},
      {"gelu_grad",
       {F32({2}), F32({3})},
       {},
       "gelu_grad: shapes differ, and cannot be broadcast to one: dy f32[2], x f32[3]"},
      {"silu_grad",
       {F32({2}), F32({3})},
       {},
       "silu_grad: shapes differ, and cannot be broadcast to one: dy f32[2], x f32[3]"}};
  for (const char* op :
       {"reciprocal", "square",   "sqrt", "rsqrt", "exp",   "log",    "expm1",  "log1p",
        "floor",      "round",    "abs",  "sign",  "sin",   "cos",    "atan",   "tanh",
        "sigmoid",    "softplus", "erf",  "erfc",  "erfcx", "erfinv", "lgamma", "digamma",
        "trigamma",   "gelu_erf", "relu", "gelu",  "silu"}) {
    family.rejections.push_back(
        {op,
         {I64({2}, 5)},
         {},
         fmt::format("{}: x is not floating-point, convert with to(x, dtype): x i64[2]", op)});
  }
  return family;
}

}  // namespace zg::testing
