#include "tests/ops/op_case.h"

namespace zg::testing {
namespace {

// The number of elements before, in and after a dim.
struct Sizes {
  Sizes(const Shape& shape, int64_t dim) {
    for (int i = 0; i < shape.num_dims(); ++i) {
      (i < dim ? outer : i == dim ? size : inner) *= shape.dim(i);
    }
  }
  int64_t outer = 1, size = 1, inner = 1;
};

ReferenceOutputs Iota(const ReferenceCall& call) {
  std::vector<double> y;
  for (int64_t i = 0; i < call.attributes.Int("size"); ++i) {
    y.push_back(
        static_cast<double>(call.attributes.Int("start") + i * call.attributes.Int("step")));
  }
  return {y};
}

// The position that element `at` of the index refers to, in a tensor with `size` elements along the
// dim.
int64_t Pointed(const ReferenceTensor& index, int64_t at, int64_t dim, int64_t size) {
  const Sizes sizes(index.shape, dim);
  const int64_t outer = at / (sizes.size * sizes.inner);
  return (outer * size + static_cast<int64_t>(index.values[at])) * sizes.inner + at % sizes.inner;
}

ReferenceOutputs Gather(const ReferenceCall& call) {
  const int64_t dim = call.attributes.Int("dim");
  const int64_t size = call.inputs[0].shape.dim(static_cast<int>(dim));
  std::vector<double> y;
  for (int64_t at = 0; at < call.inputs[1].shape.num_elements(); ++at) {
    y.push_back(call.inputs[0].values[Pointed(call.inputs[1], at, dim, size)]);
  }
  return {y};
}

ReferenceOutputs GatherGrad(const ReferenceCall& call) {
  const int64_t dim = call.attributes.Int("dim");
  const int64_t size = call.attributes.Int("size");
  const Sizes sizes(call.inputs[0].shape, dim);
  std::vector<double> dx(sizes.outer * size * sizes.inner, 0.0);
  for (int64_t at = 0; at < call.inputs[1].shape.num_elements(); ++at) {
    dx[Pointed(call.inputs[1], at, dim, size)] += call.inputs[0].values[at];
  }
  return {dx};
}

// Both ops for x and an index with `picked` elements along the dim.
void AddCases(const std::string& label, const Shape& x, int64_t dim, int64_t picked,
              FamilyCases* family) {
  Shape index = x;
  index.set_dim(static_cast<int>(dim), picked);
  const int64_t size = x.dim(static_cast<int>(dim));
  family->cases.push_back({.op = "gather",
                           .label = label,
                           .inputs = {F32(x), I64(index, size)},
                           .attributes = {{"dim", dim}},
                           .reference = Gather});
  family->cases.push_back({.op = "gather_grad",
                           .label = label,
                           .inputs = {F32(index), I64(index, size)},
                           .attributes = {{"dim", dim}, {"size", size}},
                           .reference = GatherGrad});
}

OpCase IotaOf(std::string label, int64_t size, int64_t start, int64_t step) {
  return {.op = "iota",
          .label = std::move(label),
          .attributes = {{"size", size}, {"start", start}, {"step", step}},
          .reference = Iota};
}

}  // namespace

FamilyCases IndexingCases() {
  FamilyCases family;
  family.cases = {IotaOf("ascending", 7, 0, 1), IotaOf("descending", 300, 299, -1),
                  IotaOf("nothing", 0, 3, 1)};
  AddCases("a vector", {9}, 0, 4, &family);
  AddCases("rows", {5, 7}, 0, 3, &family);
  AddCases("columns", {5, 7}, 1, 9, &family);
  AddCases("one of many", {5, 300}, 1, 1, &family);
  AddCases("middle", {3, 5, 7}, 1, 4, &family);
  AddCases("splits of the first", {6, 6, 6}, 0, 6, &family);
  AddCases("splits of the middle", {6, 6, 6}, 1, 6, &family);
  AddCases("splits of the last", {6, 6, 6}, 2, 12, &family);
  AddCases("splits of a vector", {6}, 0, 6, &family);
  AddCases("splits of rows", {6, 6}, 0, 6, &family);
  AddCases("splits of columns", {6, 6}, 1, 6, &family);
  AddCases("splits of three, by the first", {6, 6, 6}, 0, 12, &family);
  for (OpCase& one : family.cases) one.check_gradient = one.label != "one of many";
  family.cases.push_back({.op = "gather",
                          .label = "of bool",
                          .inputs = {Bool({5, 7}), I64({5, 2}, 7)},
                          .attributes = {{"dim", int64_t{1}}},
                          .reference = Gather,
                          .tolerance = 0});
  family.cases.back().check_gradient = false;
  family.cases.push_back(family.cases.back());
  family.cases.back().label = "of bool, splits";
  family.cases.back().inputs = {Bool({6, 6}), I64({6, 6}, 6)};
  family.rejections = {
      {"iota", {}, {{"size", int64_t{-1}}}, "iota: got size -1, expected one that a tensor has"},
      {"gather",
       {F32({5, 7}), I64({5, 7}, 5)},
       {{"dim", int64_t{2}}},
       "gather: got dim 2, expected one of its dims: x f32[5,7], index i64[5,7]"},
      {"gather",
       {F32({5, 7}), F32({5, 7})},
       {{"dim", int64_t{1}}},
       "gather: index is not i64: x f32[5,7], index f32[5,7]"},
      {"gather",
       {F32({5, 7}), I64({4, 3}, 5)},
       {{"dim", int64_t{1}}},
       "gather: shapes differ in more than dim 1: x f32[5,7], index i64[4,3]"},
      {"gather",
       {F32({5, 7}), I64({5}, 5)},
       {{"dim", int64_t{1}}},
       "gather: shapes differ in more than dim 1: x f32[5,7], index i64[5]"},
      {"gather_grad",
       {F32({5, 7}), I64({5, 3}, 5)},
       {{"dim", int64_t{1}}, {"size", int64_t{9}}},
       "gather_grad: shapes differ: dy f32[5,7], index i64[5,3]"},
      {"gather_grad",
       {F32({5, 7}), I64({5, 7}, 5)},
       {{"dim", int64_t{1}}, {"size", int64_t{-9}}},
       "gather_grad: got size -9, expected one that a tensor has: dy f32[5,7], index i64[5,7]"},
  };
  family.large = {
      Sized("gather", "rows", {F32({257, 129}), I64({257, 300}, 129)}, {{"dim", int64_t{1}}}),
      Sized("gather_grad", "rows", {F32({70, 300}), I64({70, 300}, 129)},
            {{"dim", int64_t{1}}, {"size", int64_t{129}}})};
  family.bench = {
      Sized("gather", "classes", {F32({2048, 1536}), I64({2048, 1}, 1536)}, {{"dim", int64_t{1}}}),
      Sized("gather_grad", "classes", {F32({2048, 1}), I64({2048, 1}, 1536)},
            {{"dim", int64_t{1}}, {"size", int64_t{1536}}})};
  family.exact_on_gpu = {"iota", "gather", "gather_grad"};
  return family;
}

}  // namespace zg::testing
