#include <fmt/format.h>

#include <cmath>

#include "tests/ops/broadcast_reference.h"
#include "tests/ops/op_case.h"

namespace zg::testing {
namespace {

using Relation = bool (*)(double, double);

struct Op {
  const char* name;
  Relation holds;
  bool is_logical = false;
};

const Op kOps[] = {
    {"equal", [](double a, double b) { return a == b; }},
    {"not_equal", [](double a, double b) { return a != b; }},
    {"less", [](double a, double b) { return a < b; }},
    {"less_equal", [](double a, double b) { return a <= b; }},
    {"greater", [](double a, double b) { return a > b; }},
    {"greater_equal", [](double a, double b) { return a >= b; }},
    {"logical_and", [](double a, double b) { return a != 0.0 && b != 0.0; }, true},
    {"logical_or", [](double a, double b) { return a != 0.0 || b != 0.0; }, true},
};

ReferenceOutputs Compare(const ReferenceCall& call, Relation holds) {
  const Shape shape = BroadcastShape(call.inputs);
  const std::vector<double> a = BroadcastTo(shape, call.inputs[0]);
  const std::vector<double> b = call.inputs.size() == 2
                                    ? BroadcastTo(shape, call.inputs[1])
                                    : std::vector<double>(a.size(), call.attributes.Float("value"));
  std::vector<double> y;
  for (size_t i = 0; i < a.size(); ++i) y.push_back(holds(a[i], b[i]) ? 1.0 : 0.0);
  return {y};
}

// Quarters, so that some are equal, and a NaN.
void MakeQuarters(ReferenceCall& call) {
  for (ReferenceTensor& input : call.inputs) {
    for (double& x : input.values) x = std::floor(x * 4.0) / 4.0;
  }
  if (call.inputs[0].values.size() > 2) call.inputs[0].values[1] = std::nan("");
}

}  // namespace

FamilyCases CompareCases() {
  FamilyCases family;
  for (const Op& op : kOps) {
    const auto add_case = [&](const char* label, std::vector<InputSpec> inputs) {
      const bool is_float = IsFloat(inputs[0].type.dtype);
      OpCase added = {.op = op.name,
                      .label = label,
                      .inputs = std::move(inputs),
                      .reference = [holds = op.holds](
                                       const ReferenceCall& call) { return Compare(call, holds); },
                      .prepare = is_float ? MakeQuarters : nullptr,
                      .tolerance = 0};
      family.cases.push_back(std::move(added));
    };
    const auto add_shapes = [&](InputSpec (*make)(Shape)) {
      add_case("odd", {make({5, 7}), make({5, 7})});
      add_case("a scalar", {make({}), make({5, 7})});
      add_case("a row", {make({5, 7}), make({7})});
      add_case("both", {make({5, 1, 3}), make({7, 1})});
      add_case("long rows", {make({3, 300}), make({3, 1})});
      add_case("splits", {make({6, 6, 6}), make({6, 6, 6})});
      add_case("splits of one", {make({6, 6, 6}), make({6, 6})});
      add_case("splits of the other", {make({6}), make({6, 6, 6})});
      add_case("splits of some", {make({6, 1, 6}), make({6, 6, 1})});
      add_case("splits of a middle", {make({6, 1, 6}), make({6, 1})});
      add_case("many elements", {make({3, 1531}), make({3, 1531})});
    };
    add_shapes([](Shape shape) { return Bool(std::move(shape)); });
    if (!op.is_logical) {
      add_shapes([](Shape shape) { return F32(std::move(shape)); });
      add_shapes([](Shape shape) { return I64(std::move(shape), 4); });
      for (const InputSpec& x : {F32({5, 7}), I64({5, 7}, 3), F32({6, 6, 6}), Bool({3, 1531})}) {
        add_case("with a number", {x});
        family.cases.back().attributes = {{"value", 1.0}};
      }
    }
    family.large.push_back(Sized(op.name, "many blocks",
                                 op.is_logical
                                     ? std::vector<InputSpec>{Bool({70001}), Bool({70001})}
                                     : std::vector<InputSpec>{F32({257, 129}), F32({129})}));
    const InputSpec wide = op.is_logical ? Bool({2048, 1536}) : F32({2048, 1536});
    family.bench.push_back(Sized(op.name, "wide", {wide, wide}));
    family.exact_on_gpu.push_back(op.name);
    family.rejections.push_back(
        {op.name,
         {Bool({2}), Bool({3})},
         {},
         fmt::format("{}: shapes differ, and cannot be broadcast to one: a bool[2], b bool[3]",
                     op.name)});
    if (op.is_logical) {
      family.rejections.push_back({op.name,
                                   {F32({2}), Bool({2})},
                                   {},
                                   fmt::format("{}: a is not bool: a f32[2], b bool[2]", op.name)});
    } else {
      family.rejections.push_back(
          {op.name,
           {F32({2}), I64({2}, 3)},
           {},
           fmt::format("{}: dtypes differ, expected one; convert with to(x, dtype): a f32[2], b "
                       "i64[2]",
                       op.name)});
      family.rejections.push_back(
          {op.name,
           {{{DType::kU8, {2}}}},
           {},
           fmt::format("{}: a is not floating-point, i64 or bool: a u8[2]", op.name)});
    }
  }
  return family;
}

}  // namespace zg::testing
