#include <algorithm>

#include "tests/ops/op_case.h"

namespace zg::testing {
namespace {

using Dims = std::vector<int64_t>;

bool Contains(const Dims& dims, int64_t dim) {
  return std::find(dims.begin(), dims.end(), dim) != dims.end();
}

// For each element of the tensor `whole`, the index of the element of the other one, which has none
// of `dims`, or size 1 there.
std::vector<int64_t> IndicesWithout(const Dims& dims, const Shape& whole) {
  std::vector<int64_t> indices(whole.num_elements());
  for (int64_t i = 0; i < whole.num_elements(); ++i) {
    int64_t rest = i;
    int64_t step = 1;
    for (int dim = whole.num_dims(); dim-- > 0;) {
      const int64_t size = whole.dim(dim);
      if (!Contains(dims, dim)) {
        indices[i] += rest % size * step;
        step *= size;
      }
      rest /= size;
    }
  }
  return indices;
}

ReferenceOutputs Sum(const ReferenceCall& call) {
  const ReferenceTensor& x = call.inputs[0];
  const Dims& dims = call.attributes.Ints("dims");
  int64_t count = 1;
  for (int dim = 0; dim < x.shape.num_dims(); ++dim) {
    if (!Contains(dims, dim)) count *= x.shape.dim(dim);
  }
  std::vector<double> y(count, 0.0);
  const std::vector<int64_t> indices = IndicesWithout(dims, x.shape);
  for (size_t i = 0; i < x.values.size(); ++i) {
    y[indices[i]] += call.attributes.Float("factor") * x.values[i];
  }
  return {y};
}

ReferenceOutputs Expand(const ReferenceCall& call) {
  const Dims& dims = call.attributes.Ints("dims");
  const Dims& sizes = call.attributes.Ints("sizes");
  Dims whole = call.inputs[0].shape.dims();
  for (size_t i = 0; i < dims.size(); ++i) {
    if (call.attributes.Bool("keep_dims")) {
      whole[dims[i]] = sizes[i];
    } else {
      whole.insert(whole.begin() + dims[i], sizes[i]);
    }
  }
  std::vector<double> y;
  for (const int64_t index : IndicesWithout(dims, Shape(whole))) {
    y.push_back(call.attributes.Float("factor") * call.inputs[0].values[index]);
  }
  return {y};
}

OpCase SumOf(std::string label, const Shape& x, Dims dims, bool keep_dims = false,
             double factor = 1.0) {
  return {.op = "sum",
          .label = std::move(label),
          .inputs = {F32(x)},
          .attributes = {{"dims", std::move(dims)}, {"keep_dims", keep_dims}, {"factor", factor}},
          .reference = Sum};
}

OpCase ExpandOf(std::string label, const Shape& x, Dims dims, Dims sizes, bool keep_dims = false,
                double factor = 1.0) {
  return {.op = "expand",
          .label = std::move(label),
          .inputs = {F32(x)},
          .attributes = {{"dims", std::move(dims)},
                         {"sizes", std::move(sizes)},
                         {"keep_dims", keep_dims},
                         {"factor", factor}},
          .reference = Expand};
}

}  // namespace

FamilyCases SumCases() {
  FamilyCases family;
  family.cases = {
      SumOf("leading", {5, 7}, {0}),
      SumOf("last", {5, 7}, {1}),
      SumOf("all", {5, 7}, {0, 1}),
      SumOf("nothing", {5, 7}, {}),
      SumOf("of a scalar", {}, {}),
      SumOf("of no elements", {3, 0}, {1}),
      SumOf("middle", {3, 5, 7}, {1}),
      SumOf("two groups", {3, 5, 7}, {0, 2}, false, 0.25),
      SumOf("three groups, kept", {2, 3, 2, 3, 5}, {0, 2, 4}, true),
      SumOf("a mean", {3, 5, 7}, {1, 2}, true, 1.0 / 35),
      SumOf("many rows", {301, 19}, {0}),
      ExpandOf("leading", {7}, {0}, {5}),
      ExpandOf("last", {5}, {1}, {7}, false, 0.5),
      ExpandOf("a scalar", {}, {0, 1}, {5, 7}),
      ExpandOf("nothing", {5, 7}, {}, {}),
      ExpandOf("kept", {5, 1, 7}, {1}, {3}, true, -2.0),
      ExpandOf("two groups", {5}, {0, 2}, {3, 7}),
      ExpandOf("i64", {5}, {1}, {7}),
      ExpandOf("bool", {5}, {0}, {7}),
  };
  family.cases[family.cases.size() - 2].inputs = {I64({5}, 9)};
  family.cases.back().inputs = {Bool({5})};
  // For each op, a case whose dims are all divisible by 6.
  const size_t num_cases = family.cases.size();
  for (size_t i = 0; i < num_cases; ++i) {
    OpCase splits = family.cases[i];
    splits.label += ", splits";
    splits.check_gradient = false;
    const std::vector<int64_t>& dims = splits.attributes.Ints("dims");
    Shape& shape = splits.inputs[0].type.shape;
    const bool repeats = splits.op == "expand";
    for (int dim = 0; dim < shape.num_dims(); ++dim) {
      if (!repeats || shape.dim(dim) != 1 || !Contains(dims, dim)) shape.set_dim(dim, 6);
    }
    if (repeats) splits.attributes.Set("sizes", Dims(dims.size(), 6));
    family.cases.push_back(std::move(splits));
  }
  family.rejections = {
      {"sum",
       {F32({5, 7})},
       {{"dims", Dims{2}}},
       "sum: got dims [2], expected ascending numbers below 2: x f32[5,7]"},
      {"sum",
       {F32({5, 7})},
       {{"dims", Dims{1, 0}}},
       "sum: got dims [1,0], expected ascending numbers below 2: x f32[5,7]"},
      {"sum",
       {I64({5}, 3)},
       {{"dims", Dims{0}}},
       "sum: x is not floating-point, convert with to(x, dtype): x i64[5]"},
      {"expand",
       {F32({5, 7})},
       {{"dims", Dims{1}}, {"sizes", Dims{3}}, {"keep_dims", true}},
       "expand: dim 1 is not 1, expected a size to repeat: x f32[5,7]"},
      {"expand",
       {F32({5})},
       {{"dims", Dims{0}}, {"sizes", Dims{3, 4}}},
       "expand: got 2 sizes for 1 dims: x f32[5]"},
      {"expand",
       {I64({5}, 9)},
       {{"dims", Dims{0}}, {"sizes", Dims{3}}, {"factor", 0.5}},
       "expand: x is not floating-point, convert with to(x, dtype): x i64[5]"},
      {"expand",
       {F32({5})},
       {{"dims", Dims{0}}, {"sizes", Dims{-1}}},
       "expand: got sizes that no tensor has: x f32[5]"},
  };
  family.large = {SumOf("many rows", {300, 96}, {0}),    SumOf("one column", {10000, 1}, {0}),
                  SumOf("rows", {700, 300}, {1}),        SumOf("middles", {7, 400, 70}, {1}),
                  SumOf("groups", {9, 300, 50}, {0, 2}), ExpandOf("rows", {300}, {1}, {700}),
                  ExpandOf("columns", {300}, {0}, {700})};
  for (OpCase& large : family.large) large.reference = nullptr;
  family.bench = {SumOf("positions", {8, 256, 384}, {0}), SumOf("rows", {2048, 1536}, {1}),
                  SumOf("channels", {8, 64, 6144}, {0, 2}), ExpandOf("rows", {2048}, {1}, {1536})};
  family.exact_on_gpu = {"expand"};
  return family;
}

}  // namespace zg::testing
