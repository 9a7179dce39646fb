#include "tests/ops/op_case.h"

namespace zg::testing {
namespace {

ReferenceOutputs AddBroadcast(const ReferenceCall& call) {
  std::vector<double> y = call.inputs[0].values;
  const std::vector<double>& r = call.inputs[1].values;
  for (size_t i = 0; i < y.size(); ++i) y[i] += r[i % r.size()];
  return {y};
}

ReferenceOutputs SumLeading(const ReferenceCall& call) {
  std::vector<double> y(call.attributes.Shape("shape").num_elements(), 0.0);
  const std::vector<double>& x = call.inputs[0].values;
  for (size_t i = 0; i < x.size(); ++i) y[i % y.size()] += x[i];
  return {y};
}

OpCase Add(std::string label, const Shape& x, const Shape& r) {
  return {.op = "add_broadcast",
          .label = std::move(label),
          .inputs = {F32(x), F32(r)},
          .reference = AddBroadcast};
}

OpCase Sum(std::string label, const Shape& x, const Shape& shape) {
  return {.op = "sum_leading",
          .label = std::move(label),
          .inputs = {F32(x)},
          .attributes = {{"shape", shape}},
          .reference = SumLeading};
}

}  // namespace

FamilyCases BroadcastCases() {
  FamilyCases family;
  family.cases = {
      Add("odd", {5, 7}, {7}),           Add("three dims on two", {3, 5, 7}, {5, 7}),
      Add("a scalar", {5, 7}, {}),       Add("equal shapes", {6, 12}, {6, 12}),
      Add("splits", {6, 6, 6}, {6}),     Add("splits of both", {6, 6, 6}, {6, 6}),
      Sum("odd", {5, 7}, {7}),           Sum("three dims to two", {3, 5, 7}, {5, 7}),
      Sum("to a scalar", {5, 7}, {}),    Sum("nothing to sum", {5, 7}, {5, 7}),
      Sum("many rows", {301, 19}, {19}), Sum("splits", {6, 6, 6}, {6}),
  };
  family.rejections = {
      {"add_broadcast",
       {F32({5, 7}), F32({5})},
       {},
       "add_broadcast: r does not fit the last dims of x: x f32[5,7], r f32[5]"},
      {"sum_leading",
       {F32({5, 7})},
       {{"shape", Shape{5}}},
       "sum_leading: x does not end with the dims [5]: x f32[5,7]"},
  };
  family.large = {Sized("add_broadcast", "many rows", {F32({67, 96}), F32({96})}),
                  Sized("sum_leading", "many rows", {F32({300, 96})}, {{"shape", Shape{96}}}),
                  Sized("sum_leading", "one column", {F32({10000, 1})}, {{"shape", Shape{1}}})};
  family.bench = {
      Sized("add_broadcast", "position", {F32({8, 256, 384}), F32({256, 384})}),
      Sized("sum_leading", "position", {F32({8, 256, 384})}, {{"shape", Shape{256, 384}}})};
  family.exact_on_gpu = {"add_broadcast"};
  return family;
}

}  // namespace zg::testing
