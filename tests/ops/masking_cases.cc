#include "tests/ops/broadcast_reference.h"
#include "tests/ops/op_case.h"

namespace zg::testing {
namespace {

ReferenceOutputs Where(const ReferenceCall& call) {
  const Shape shape = BroadcastShape(call.inputs);
  const std::vector<double> condition = BroadcastTo(shape, call.inputs[0]);
  std::vector<double> y = BroadcastTo(shape, call.inputs[1]);
  const std::vector<double> b = BroadcastTo(shape, call.inputs[2]);
  for (size_t i = 0; i < y.size(); ++i) y[i] = condition[i] != 0.0 ? y[i] : b[i];
  return {y};
}

ReferenceOutputs MaskedFill(const ReferenceCall& call) {
  const Shape shape = BroadcastShape(call.inputs);
  std::vector<double> y = BroadcastTo(shape, call.inputs[0]);
  const std::vector<double> mask = BroadcastTo(shape, call.inputs[1]);
  for (size_t i = 0; i < y.size(); ++i) {
    if ((mask[i] != 0.0) == call.attributes.Bool("where")) y[i] = call.attributes.Float("value");
  }
  return {y};
}

OpCase WhereOf(std::string label, const Shape& condition, InputSpec a, InputSpec b) {
  return {.op = "where",
          .label = std::move(label),
          .inputs = {Bool(condition), std::move(a), std::move(b)},
          .reference = Where};
}

OpCase FillOf(std::string label, InputSpec x, const Shape& mask, double value, bool where = true) {
  return {.op = "masked_fill",
          .label = std::move(label),
          .inputs = {std::move(x), Bool(mask)},
          .attributes = {{"value", value}, {"where", where}},
          .reference = MaskedFill};
}

}  // namespace

FamilyCases MaskingCases() {
  FamilyCases family;
  family.cases = {
      WhereOf("odd", {5, 7}, F32({5, 7}), F32({5, 7})),
      WhereOf("scalars", {}, F32({}), F32({})),
      WhereOf("a row of conditions", {7}, F32({5, 7}), F32({5, 1})),
      WhereOf("a condition for all", {5, 7}, F32({}), F32({7})),
      WhereOf("i64", {5, 1}, I64({7}, 9), I64({5, 7}, 9)),
      WhereOf("bool", {5, 7}, Bool({5, 7}), Bool({7})),
      WhereOf("long rows", {300}, F32({3, 300}), F32({3, 1})),
      WhereOf("splits", {6, 6, 6}, F32({6, 6, 6}), F32({6, 6, 6})),
      WhereOf("splits of some", {6, 6}, F32({6, 6, 6}), F32({6, 1, 6})),
      WhereOf("splits of the condition", {6, 6, 6}, F32({6}), F32({})),
      WhereOf("many elements", {3, 1531}, F32({3, 1531}), F32({3, 1531})),
      FillOf("odd", F32({5, 7}), {5, 7}, 0.0),
      FillOf("elsewhere", F32({5, 7}), {5, 7}, 0.5, false),
      FillOf("a row", F32({5, 7}), {7}, -2.0),
      FillOf("a column", F32({5, 7}), {5, 1}, -2.0, false),
      FillOf("more than x", F32({7}), {5, 7}, 0.0),
      FillOf("i64", I64({5, 7}, 9), {5, 7}, -1.0),
      FillOf("bool", Bool({5, 7}), {5, 7}, 1.0),
      FillOf("long rows", F32({3, 300}), {300}, 1.5),
      FillOf("splits", F32({6, 6, 6}), {6, 6, 6}, 0.0),
      FillOf("splits of some", F32({6, 6, 6}), {6, 6}, 1.0),
      FillOf("splits of the mask", F32({6, 1, 6}), {6, 6, 1}, 0.0),
      FillOf("splits of a row", F32({6}), {6, 6, 6}, 1.0),
      FillOf("many elements", F32({3, 1531}), {3, 1531}, 0.0),
  };
  for (OpCase& one : family.cases) {
    const bool is_float = IsFloat(one.inputs[one.op == "where" ? 1 : 0].type.dtype);
    one.check_gradient = is_float && one.label != "many elements" && one.label != "long rows";
  }
  // For each op, a case whose dims are all divisible by 6.
  const size_t num_cases = family.cases.size();
  for (size_t i = 0; i < num_cases; ++i) {
    OpCase splits = family.cases[i];
    splits.label += ", splits";
    splits.check_gradient = false;
    for (InputSpec& input : splits.inputs) {
      Shape& shape = input.type.shape;
      for (int dim = 0; dim < shape.num_dims(); ++dim) {
        if (shape.dim(dim) != 1) shape.set_dim(dim, 6);
      }
    }
    family.cases.push_back(std::move(splits));
  }
  family.rejections = {
      {"where",
       {F32({2}), F32({2}), F32({2})},
       {},
       "where: condition is not bool: condition f32[2], a f32[2], b f32[2]"},
      {"where",
       {Bool({2}), F32({2}), I64({2}, 3)},
       {},
       "where: dtypes of a and b differ: condition bool[2], a f32[2], b i64[2]"},
      {"where",
       {Bool({2}), F32({3}), F32({3})},
       {},
       "where: shapes differ, and cannot be broadcast to one: condition bool[2], a f32[3], b "
       "f32[3]"},
      {"masked_fill",
       {F32({2}), F32({2})},
       {{"value", 0.0}},
       "masked_fill: mask is not bool: x f32[2], mask f32[2]"},
      {"masked_fill",
       {F32({2}), Bool({3})},
       {{"value", 0.0}},
       "masked_fill: shapes differ, and cannot be broadcast to one: x f32[2], mask bool[3]"},
      {"masked_fill", {F32({2}), Bool({2})}, {}, "masked_fill: attribute 'value' is missing"},
  };
  family.large = {
      Sized("where", "odd rows", {Bool({257, 129}), F32({257, 129}), F32({129})}),
      Sized("masked_fill", "odd rows", {F32({257, 129}), Bool({257, 129})}, {{"value", 0.0}})};
  family.bench = {
      Sized("where", "wide", {Bool({2048, 1536}), F32({2048, 1536}), F32({2048, 1536})}),
      Sized("masked_fill", "wide", {F32({2048, 1536}), Bool({2048, 1536})}, {{"value", 0.0}})};
  family.exact_on_gpu = {"where", "masked_fill"};
  return family;
}

}  // namespace zg::testing
