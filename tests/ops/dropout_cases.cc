#include "framework/base/random.h"
#include "tests/ops/op_case.h"

namespace zg::testing {
namespace {

// The index of an element of a call that has some parts of x along a dim.
int64_t IndexInWhole(const ReferenceCall& call, size_t i) {
  const auto at = static_cast<int64_t>(i);
  if (call.inputs.size() == 1) return at;
  const std::vector<double>& numbers = call.inputs[1].values;
  const Shape& shape = call.inputs[0].shape;
  int64_t slice = 1;  // elements within one index of the dims before
  for (int dim = static_cast<int>(call.attributes.Int("dim")); dim < shape.num_dims(); ++dim) {
    slice *= shape.dim(dim);
  }
  const int64_t part = slice / static_cast<int64_t>(numbers.size());
  const auto number = static_cast<int64_t>(numbers[at % slice / part]);
  return (at / slice * call.attributes.Int("parts") + number) * part + at % part;
}

ReferenceOutputs Dropout(const ReferenceCall& call) {
  const double probability = call.attributes.Float("probability");
  RandomKey key{call.step.seed};
  for (int64_t fold : {call.step.step, call.step.micro_batch, call.attributes.Int("stream")}) {
    key = FoldIn(key, static_cast<uint64_t>(fold));
  }
  std::vector<double> y = call.inputs[0].values;
  for (size_t i = 0; i < y.size(); ++i) {
    y[i] = UniformAt(key, IndexInWhole(call, i)) < probability ? 0.0 : y[i] / (1.0 - probability);
  }
  return {y};
}

OpCase CaseOfParts(const char* op, std::string label, const Shape& shape, int64_t dim, int64_t own,
                   int64_t parts, int64_t first) {
  return {
      .op = op,
      .label = std::move(label),
      .inputs = {F32(shape), I64({own}, 1)},
      .attributes = {{"probability", 0.4}, {"stream", int64_t{3}}, {"dim", dim}, {"parts", parts}},
      .reference = Dropout,
      .prepare = [first](ReferenceCall& call) { NumberParts(call, 1, first); },
      .check_gradient = false,
      .parts_are_micro_batches = true};
}

OpCase Case(const char* op, std::string label, const Shape& shape, double probability) {
  return {.op = op,
          .label = std::move(label),
          .inputs = {F32(shape)},
          .attributes = {{"probability", probability}, {"stream", int64_t{3}}},
          .reference = Dropout,
          .parts_are_micro_batches = true};
}

}  // namespace

FamilyCases DropoutCases() {
  FamilyCases family;
  for (const char* op : {"dropout", "dropout_grad"}) {
    family.cases.push_back(Case(op, "odd", {5, 7}, 0.25));
    family.cases.push_back(Case(op, "keeps all", {5, 7}, 0.0));
    family.cases.push_back(Case(op, "splits", {6, 3}, 0.5));
    family.cases.push_back(Case(op, "many elements", {3, 1531}, 0.1));
    family.cases.back().check_gradient = false;
    family.cases.push_back(CaseOfParts(op, "a part", {3, 5, 8}, 1, 1, 4, 2));
    family.cases.push_back(CaseOfParts(op, "parts", {3, 6, 7}, 1, 3, 5, 1));
    family.cases.push_back(CaseOfParts(op, "all parts", {6, 6, 2}, 1, 6, 6, 0));
    family.cases.push_back(CaseOfParts(op, "all parts of dim 0", {6, 4}, 0, 6, 6, 0));
  }
  family.rejections = {{"dropout",
                        {F32({5})},
                        {{"probability", 1.0}, {"stream", int64_t{0}}},
                        "dropout: probability is 1, expected 0 <= probability < 1"},
                       {"dropout",
                        {I64({5}, 9)},
                        {{"probability", 0.5}, {"stream", int64_t{0}}},
                        "dropout: x is not floating-point, convert with to(x, dtype): x i64[5]"},
                       {"dropout_grad",
                        {F32({5})},
                        {{"probability", -0.5}, {"stream", int64_t{0}}},
                        "dropout_grad: probability is -0.5, expected 0 <= probability < 1"}};
  const ir::Attributes attributes = {{"probability", 0.3}, {"stream", int64_t{5}}};
  family.large = {Sized("dropout", "odd rows", {F32({33, 1025})}, attributes)};
  family.bench = {Sized("dropout", "hidden", {F32({2048, 384})}, attributes)};
  family.exact_on_gpu = {"dropout", "dropout_grad"};
  return family;
}

}  // namespace zg::testing
