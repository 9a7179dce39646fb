#include "framework/base/random.h"
#include "tests/ops/op_case.h"

namespace zg::testing {
namespace {

ReferenceOutputs Dropout(const ReferenceCall& call) {
  const double probability = call.attributes.Float("probability");
  RandomKey key{call.step.seed};
  for (int64_t fold : {call.step.step, call.step.micro_batch, call.attributes.Int("stream")}) {
    key = FoldIn(key, static_cast<uint64_t>(fold));
  }
  std::vector<double> y = call.inputs[0].values;
  for (size_t i = 0; i < y.size(); ++i) {
    y[i] = UniformAt(key, i) < probability ? 0.0 : y[i] / (1.0 - probability);
  }
  return {y};
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
  }
  family.rejections = {{"dropout",
                        {F32({5})},
                        {{"probability", 1.0}, {"stream", int64_t{0}}},
                        "dropout: probability is 1, expected 0 <= probability < 1"},
                       {"dropout",
                        {I64({5}, 9)},
                        {{"probability", 0.5}, {"stream", int64_t{0}}},
                        "dropout: x is not floating-point: x i64[5]"},
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
