#include "tests/ops/op_case.h"

namespace zg::testing {
namespace {

// For each place, the last of the positions that replaces(at, before) lets take it, as elements of
// the index.
template <typename F>
ReferenceOutputs Positions(const ReferenceCall& call, const ReferenceTensor& index,
                           const F& replaces) {
  const int dim = static_cast<int>(call.attributes.Int("dim"));
  const int64_t size = call.attributes.Int("size"), from = index.shape.dim(dim);
  int64_t inner = 1;
  for (int i = dim + 1; i < index.shape.num_dims(); ++i) inner *= index.shape.dim(i);
  const int64_t outer = index.shape.num_elements() / from / inner;
  std::vector<double> positions(outer * size * inner, -1.0);
  for (int64_t at = 0; at < index.shape.num_elements(); ++at) {
    const int64_t row = at / inner / from, k = at % inner;
    double& position = positions[(row * size + static_cast<int64_t>(index.values[at])) * inner + k];
    const int64_t before = (row * from + static_cast<int64_t>(position)) * inner + k;
    if (position < 0 || replaces(at, before)) position = static_cast<double>(at / inner % from);
  }
  return {positions};
}

ReferenceOutputs Last(const ReferenceCall& call) {
  return Positions(call, call.inputs[0], [](int64_t, int64_t) { return true; });
}

ReferenceOutputs Argmax(const ReferenceCall& call) {
  const std::vector<double>& x = call.inputs[0].values;
  return Positions(call, call.inputs[1],
                   [&](int64_t at, int64_t before) { return x[at] > x[before]; });
}

// Both ops for an index of the given shape.
void AddCases(const std::string& label, const Shape& index, int64_t dim, int64_t size,
              FamilyCases* family) {
  family->cases.push_back({.op = "scatter_last",
                           .label = label,
                           .inputs = {I64(index, size)},
                           .attributes = {{"dim", dim}, {"size", size}},
                           .reference = Last,
                           .tolerance = 0});
  family->cases.push_back({.op = "scatter_argmax",
                           .label = label,
                           .inputs = {F32(index), I64(index, size)},
                           .attributes = {{"dim", dim}, {"size", size}},
                           .reference = Argmax,
                           .tolerance = 0});
}

}  // namespace

FamilyCases ScatterCases() {
  FamilyCases family;
  AddCases("a vector", {9}, 0, 4, &family);
  AddCases("rows", {5, 7}, 0, 3, &family);
  AddCases("columns", {5, 7}, 1, 9, &family);
  AddCases("many to few", {5, 300}, 1, 6, &family);
  AddCases("middle", {3, 5, 7}, 1, 4, &family);
  AddCases("splits of the first", {6, 6, 6}, 0, 6, &family);
  AddCases("splits of the last", {6, 6, 6}, 2, 12, &family);
  AddCases("splits of columns", {6, 6}, 1, 6, &family);
  AddCases("splits of rows", {6, 6}, 0, 6, &family);
  // Halves: many elements are equal.
  family.cases.push_back({.op = "scatter_argmax",
                          .label = "equal ones",
                          .inputs = {F32({4, 50}), I64({4, 50}, 3)},
                          .attributes = {{"dim", int64_t{1}}, {"size", int64_t{3}}},
                          .reference = Argmax,
                          .prepare =
                              [](ReferenceCall& call) {
                                for (double& x : call.inputs[0].values) x = x < 0.0 ? -0.5 : 0.5;
                              },
                          .tolerance = 0});
  family.rejections = {
      {"scatter_last",
       {I64({5, 7}, 5)},
       {{"dim", int64_t{2}}, {"size", int64_t{5}}},
       "scatter_last: got dim 2, expected one of its dims: index i64[5,7]"},
      {"scatter_last",
       {F32({5, 7})},
       {{"dim", int64_t{1}}, {"size", int64_t{5}}},
       "scatter_last: index is not i64: index f32[5,7]"},
      {"scatter_last",
       {I64({5, 7}, 5)},
       {{"dim", int64_t{1}}, {"size", int64_t{-5}}},
       "scatter_last: got size -5, expected one that a tensor has: index i64[5,7]"},
      {"scatter_argmax",
       {F32({5, 7}), I64({5, 3}, 5)},
       {{"dim", int64_t{1}}, {"size", int64_t{5}}},
       "scatter_argmax: shapes differ: x f32[5,7], index i64[5,3]"},
      {"scatter_argmax",
       {I64({5, 7}, 5), I64({5, 7}, 5)},
       {{"dim", int64_t{1}}, {"size", int64_t{5}}},
       "scatter_argmax: x is not floating-point, convert with to(x, dtype): x i64[5,7], index i64[5,7]"},
  };
  const ir::Attributes columns = {{"dim", int64_t{1}}, {"size", int64_t{129}}};
  family.large = {
      Sized("scatter_last", "columns", {I64({70, 300}, 129)}, columns),
      Sized("scatter_argmax", "columns", {F32({70, 300}), I64({70, 300}, 129)}, columns)};
  const ir::Attributes nodes = {{"dim", int64_t{0}}, {"size", int64_t{2048}}};
  family.bench = {
      Sized("scatter_last", "edges to nodes", {I64({16384, 64}, 2048)}, nodes),
      Sized("scatter_argmax", "edges to nodes", {F32({16384, 64}), I64({16384, 64}, 2048)}, nodes)};
  family.exact_on_gpu = {"scatter_last", "scatter_argmax"};
  return family;
}

}  // namespace zg::testing
