#include "tests/ops/op_case.h"

namespace zg::testing {
namespace {

ReferenceOutputs Cumsum(const ReferenceCall& call) {
  const Shape& shape = call.inputs[0].shape;
  const int dim = static_cast<int>(call.attributes.Int("dim"));
  const int64_t size = shape.dim(dim);
  int64_t inner = 1;
  for (int i = dim + 1; i < shape.num_dims(); ++i) inner *= shape.dim(i);
  std::vector<double> y = call.inputs[0].values;
  for (int64_t first = 0; first < shape.num_elements(); ++first) {
    if (first / inner % size != 0) continue;
    double sum = 0.0;
    for (int64_t i = 0; i < size; ++i) {
      double& element = y[first + (call.attributes.Bool("reverse") ? size - 1 - i : i) * inner];
      element = sum += element;
    }
  }
  return {y};
}

OpCase Of(std::string label, const Shape& x, int64_t dim, bool reverse = false) {
  return {.op = "cumsum",
          .label = std::move(label),
          .inputs = {F32(x)},
          .attributes = {{"dim", dim}, {"reverse", reverse}},
          .reference = Cumsum};
}

}  // namespace

FamilyCases CumsumCases() {
  FamilyCases family;
  family.cases = {Of("rows", {5, 7}, 1),
                  Of("columns", {5, 7}, 0),
                  Of("backwards", {5, 7}, 1, true),
                  Of("columns backwards", {3, 5, 7}, 1, true),
                  Of("splits of the last", {6, 6, 6}, 2),
                  Of("splits of the first", {6, 6, 6}, 0),
                  Of("a vector", {6}, 0)};
  for (OpCase of_integers : std::vector<OpCase>(family.cases)) {
    of_integers.label += ", of integers";
    of_integers.inputs = {I64(of_integers.inputs[0].type.shape, 1000)};
    of_integers.tolerance = 0;
    family.cases.push_back(std::move(of_integers));
  }
  for (const bool reverse : {false, true}) {
    OpCase squares =
        Of(reverse ? "beyond a square, backwards" : "beyond a square", {19, 37}, 1, reverse);
    squares.check_gradient = false;
    family.cases.push_back(std::move(squares));
  }
  family.rejections = {{"cumsum",
                        {F32({5, 7})},
                        {{"dim", int64_t{2}}},
                        "cumsum: got dim 2, expected one of its dims: x f32[5,7]"},
                       {"cumsum",
                        {Bool({5})},
                        {{"dim", int64_t{0}}},
                        "cumsum: x is not floating-point, convert with to(x, dtype): x bool[5]"}};
  family.large = {Sized("cumsum", "rows", {F32({70, 300})}, {{"dim", int64_t{1}}}),
                  Sized("cumsum", "columns", {F32({70, 300})}, {{"dim", int64_t{0}}})};
  family.bench = {Sized("cumsum", "rows", {F32({2048, 1536})}, {{"dim", int64_t{1}}}),
                  Sized("cumsum", "columns", {F32({2048, 1536})}, {{"dim", int64_t{0}}})};
  family.exact_on_gpu = {"cumsum"};
  return family;
}

}  // namespace zg::testing
