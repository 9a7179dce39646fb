#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tests/ops/broadcast_reference.h"
#include "tests/ops/op_case.h"

namespace zg::testing {
namespace {

using Formula = double (*)(double, double);

struct Op {
  const char* name;
  Formula formula;
  bool by_constant = false;
};

const Op kOps[] = {
    {"integer_add", [](double a, double b) { return a + b; }},
    {"integer_subtract", [](double a, double b) { return a - b; }},
    {"integer_multiply", [](double a, double b) { return a * b; }},
    {"integer_maximum", [](double a, double b) { return std::max(a, b); }},
    {"integer_minimum", [](double a, double b) { return std::min(a, b); }},
    {"floor_divide", [](double a, double b) { return std::floor(a / b); }, true},
    {"remainder", [](double a, double b) { return a - b * std::floor(a / b); }, true},
};

ReferenceOutputs Compute(const ReferenceCall& call, Formula formula) {
  const Shape shape = BroadcastShape(call.inputs);
  const std::vector<double> a = BroadcastTo(shape, call.inputs[0]);
  const std::vector<double> b =
      call.inputs.size() == 2
          ? BroadcastTo(shape, call.inputs[1])
          : std::vector<double>(a.size(), static_cast<double>(call.attributes.Int("value")));
  std::vector<double> y;
  for (size_t i = 0; i < a.size(); ++i) y.push_back(formula(a[i], b[i]));
  return {y};
}

// In [-end, end).
InputSpec Signed(Shape shape, int64_t end = 1000) {
  InputSpec spec = I64(std::move(shape), end);
  spec.low = -spec.high;
  return spec;
}

void AddOp(const Op& op, FamilyCases* family) {
  const auto add_case = [&](const char* label, std::vector<InputSpec> inputs, int64_t value = 0) {
    OpCase added = {.op = op.name,
                    .label = label,
                    .inputs = std::move(inputs),
                    .reference = [formula = op.formula](
                                     const ReferenceCall& call) { return Compute(call, formula); },
                    .tolerance = 0};
    if (added.inputs.size() == 1) added.attributes = {{"value", value}};
    family->cases.push_back(std::move(added));
  };
  add_case("with a number", {Signed({5, 7})}, 7);
  add_case("of a scalar", {Signed({})}, 3);
  add_case("with one", {Signed({3, 5})}, 1);
  add_case("splits, with a number", {Signed({6, 6, 6})}, 16);
  add_case("many elements", {Signed({3, 1531})}, 999);
  family->large.push_back(
      Sized(op.name, "many blocks", {Signed({70001})}, {{"value", int64_t{5}}}));
  family->bench.push_back(Sized(op.name, "wide", {Signed({1024, 1536})}, {{"value", int64_t{5}}}));
  family->exact_on_gpu.push_back(op.name);
  family->rejections.push_back({op.name,
                                {F32({2})},
                                {{"value", int64_t{1}}},
                                fmt::format("{}: a is not i64: a f32[2]", op.name)});
  if (op.by_constant) {
    family->rejections.push_back({op.name,
                                  {Signed({2})},
                                  {{"value", int64_t{0}}},
                                  fmt::format("{}: value is 0, expected at least 1", op.name)});
    return;
  }
  add_case("with a negative number", {Signed({5, 7})}, -7);
  add_case("odd", {Signed({5, 7}), Signed({5, 7})});
  add_case("a scalar", {Signed({}), Signed({5, 7})});
  add_case("a row", {Signed({5, 7}), Signed({7})});
  add_case("both", {Signed({5, 1, 3}), Signed({7, 1})});
  add_case("long rows", {Signed({3, 300}), Signed({3, 1})});
  add_case("splits", {Signed({6, 6, 6}), Signed({6, 6, 6})});
  add_case("splits of one", {Signed({6, 6, 6}), Signed({6, 6})});
  add_case("splits of the other", {Signed({6}), Signed({6, 6, 6})});
  add_case("splits of some", {Signed({6, 1, 6}), Signed({6, 6, 1})});
  add_case("splits of a middle", {Signed({6, 1, 6}), Signed({6, 1})});
  add_case("many elements of two", {Signed({3, 1531}), Signed({3, 1531})});
  family->large.push_back(Sized(op.name, "rows", {Signed({257, 129}), Signed({129})}));
  family->rejections.push_back({op.name,
                                {Signed({2}), F32({2})},
                                {},
                                fmt::format("{}: b is not i64: a i64[2], b f32[2]", op.name)});
  family->rejections.push_back(
      {op.name,
       {Signed({2}), Signed({3})},
       {},
       fmt::format("{}: shapes differ, and cannot be broadcast to one: a i64[2], b i64[3]",
                   op.name)});
}

}  // namespace

FamilyCases IntegersCases() {
  FamilyCases family;
  for (const Op& op : kOps) AddOp(op, &family);
  return family;
}

}  // namespace zg::testing
