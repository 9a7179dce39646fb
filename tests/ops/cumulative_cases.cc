#include <cmath>

#include "tests/ops/op_case.h"

namespace zg::testing {
namespace {

// Calls visit(path), the positions of the elements along `dim` in their order, for all of them.
template <typename F>
void ForPaths(const ReferenceCall& call, bool reverse, const F& visit) {
  const Shape& shape = call.inputs[0].shape;
  const int dim = static_cast<int>(call.attributes.Int("dim"));
  const int64_t size = shape.dim(dim);
  int64_t inner = 1;
  for (int i = dim + 1; i < shape.num_dims(); ++i) inner *= shape.dim(i);
  for (int64_t first = 0; first < shape.num_elements(); ++first) {
    if (first / inner % size != 0) continue;
    std::vector<int64_t> path;
    for (int64_t i = 0; i < size; ++i) path.push_back(first + (reverse ? size - 1 - i : i) * inner);
    visit(path);
  }
}

ReferenceOutputs Argmax(const ReferenceCall& call) {
  const std::vector<double>& x = call.inputs[0].values;
  std::vector<double> y(x.size());
  ForPaths(call, false, [&](const std::vector<int64_t>& path) {
    size_t best = 0;
    for (size_t i = 0; i < path.size(); ++i) {
      if (x[path[i]] > x[path[best]]) best = i;
      y[path[i]] = static_cast<double>(best);
    }
  });
  return {y};
}

ReferenceOutputs LogCumsumExp(const ReferenceCall& call) {
  const std::vector<double>& x = call.inputs[0].values;
  std::vector<double> y(x.size());
  ForPaths(call, call.attributes.Bool("reverse"), [&](const std::vector<int64_t>& path) {
    double sum = 0.0;
    for (const int64_t at : path) y[at] = std::log(sum += std::exp(x[at]));
  });
  return {y};
}

// Both ops.
void AddCases(const std::string& label, const Shape& x, int64_t dim, FamilyCases* family) {
  family->cases.push_back({.op = "cumulative_argmax",
                           .label = label,
                           .inputs = {F32(x)},
                           .attributes = {{"dim", dim}},
                           .reference = Argmax,
                           .tolerance = 0});
  for (const bool reverse : {false, true}) {
    family->cases.push_back({.op = "logcumsumexp",
                             .label = reverse ? label + ", backwards" : label,
                             .inputs = {F32(x, -4.0, 4.0)},
                             .attributes = {{"dim", dim}, {"reverse", reverse}},
                             .reference = LogCumsumExp});
  }
}

}  // namespace

FamilyCases CumulativeCases() {
  FamilyCases family;
  AddCases("rows", {5, 7}, 1, &family);
  AddCases("columns", {5, 7}, 0, &family);
  AddCases("middle", {3, 5, 7}, 1, &family);
  AddCases("one element", {3, 1}, 1, &family);
  AddCases("splits of the last", {6, 6, 6}, 2, &family);
  AddCases("splits of the first", {6, 6, 6}, 0, &family);
  AddCases("splits of rows", {6, 6}, 1, &family);
  AddCases("many rows", {150, 19}, 1, &family);
  AddCases("many columns", {19, 150}, 0, &family);
  for (OpCase& one : family.cases) one.check_gradient = one.label.substr(0, 4) != "many";
  family.rejections = {
      {"cumulative_argmax",
       {F32({5, 7})},
       {{"dim", int64_t{2}}},
       "cumulative_argmax: got dim 2, expected one of its dims: x f32[5,7]"},
      {"logcumsumexp",
       {I64({5}, 3)},
       {{"dim", int64_t{0}}},
       "logcumsumexp: x is not floating-point, convert with to(x, dtype): x i64[5]"}};
  for (const char* const op : {"cumulative_argmax", "logcumsumexp"}) {
    for (const int64_t dim : {1, 0}) {
      const char* const label = dim == 1 ? "rows" : "columns";
      family.large.push_back(Sized(op, label, {F32({70, 300})}, {{"dim", dim}}));
      family.bench.push_back(Sized(op, label, {F32({2048, 1536})}, {{"dim", dim}}));
    }
    family.exact_on_gpu.push_back(op);
  }
  return family;
}

}  // namespace zg::testing
