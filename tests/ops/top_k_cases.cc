#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>

#include "tests/ops/op_case.h"

namespace zg::testing {
namespace {

ReferenceOutputs TopK(const ReferenceCall& call) {
  const Shape& shape = call.inputs[0].shape;
  const int64_t dim = call.attributes.Int("dim");
  const int64_t k = call.attributes.Int("k");
  const double sign = call.attributes.Bool("largest") ? 1.0 : -1.0;
  int64_t outer = 1, inner = 1;
  for (int i = 0; i < dim; ++i) outer *= shape.dim(i);
  for (int i = static_cast<int>(dim) + 1; i < shape.num_dims(); ++i) inner *= shape.dim(i);
  const int64_t size = shape.dim(static_cast<int>(dim));
  std::vector<double> values(outer * k * inner), indices(values.size());
  for (int64_t column = 0; column < outer * inner; ++column) {
    const int64_t before = column / inner, behind = column % inner;
    const auto value = [&](int64_t i) {
      return call.inputs[0].values[(before * size + i) * inner + behind];
    };
    std::vector<int64_t> order(size);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
      if (std::isnan(value(a)) || std::isnan(value(b))) {
        return std::isnan(value(a)) && !std::isnan(value(b));
      }
      return sign * value(a) > sign * value(b);
    });
    for (int64_t i = 0; i < k; ++i) {
      const int64_t to = (before * k + i) * inner + behind;
      values[to] = value(order[i]);
      indices[to] = static_cast<double>(order[i]);
    }
  }
  return {values, indices};
}

// Distinct elements, farther apart than a difference's step.
void MoveApart(ReferenceCall& call) {
  std::vector<double>& x = call.inputs[0].values;
  std::vector<size_t> order(x.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return x[a] < x[b]; });
  for (size_t i = 0; i < order.size(); ++i) x[order[i]] = 0.25 * static_cast<double>(i) - 2.0;
}

// Halves, so that many are equal, and NaNs.
void MakeTies(ReferenceCall& call) {
  std::vector<double>& x = call.inputs[0].values;
  for (double& value : x) value = std::floor(value * 2.0) / 2.0;
  x[3] = x[5] = std::nan("");
}

OpCase Of(std::string label, const Shape& x, int64_t dim, int64_t k, bool largest = true) {
  return {.op = "top_k",
          .label = std::move(label),
          .inputs = {F32(x)},
          .attributes = {{"dim", dim}, {"k", k}, {"largest", largest}},
          .reference = TopK,
          .prepare = MoveApart,
          .tolerance = 0};
}

OpCase WithTies(OpCase ties) {
  ties.label += ", ties";
  ties.prepare = MakeTies;
  ties.check_gradient = false;
  return ties;
}

// Zeros of both signs, which are equal, the largest numbers, and infinities.
OpCase WithZeros(OpCase zeros) {
  zeros.label += ", zeros";
  zeros.prepare = [](ReferenceCall& call) {
    constexpr double kSome[] = {0.0,  -0.0,    1.0, -1.0,  HUGE_VAL, -HUGE_VAL,
                                3e38, -3.0e38, 0.5, -1e-3, 1e-3};
    std::vector<double>& x = call.inputs[0].values;
    for (size_t i = 0; i < x.size(); ++i) x[i] = kSome[i * 7 % std::size(kSome)];
  };
  zeros.check_gradient = false;
  return zeros;
}

}  // namespace

FamilyCases TopKCases() {
  FamilyCases family;
  family.cases = {
      Of("largest of a row", {5, 7}, 1, 1),
      Of("smallest of a row", {5, 7}, 1, 1, false),
      Of("largest of a column", {5, 7}, 0, 1),
      Of("smallest of a column", {5, 7}, 0, 1, false),
      Of("largest of a middle", {3, 5, 2}, 1, 1),
      Of("three of a row", {5, 7}, 1, 3),
      Of("sorted", {3, 9}, 1, 9, false),
      Of("three of a middle", {2, 5, 3}, 1, 3),
      Of("of one", {3, 1}, 1, 1),
      WithTies(Of("largest of a row", {5, 37}, 1, 1)),
      WithTies(Of("smallest of a row", {5, 37}, 1, 1, false)),
      WithTies(Of("largest of a column", {37, 5}, 0, 1)),
      WithTies(Of("smallest of a column", {37, 5}, 0, 1, false)),
      WithTies(Of("many of a row", {5, 37}, 1, 30)),
      WithTies(Of("many of a column", {37, 5}, 0, 30, false)),
      Of("long row", {2, 3001}, 1, 1),
      Of("long row sorted", {2, 1500}, 1, 1500),
      Of("half of a long row", {3, 301}, 1, 150, false),
      WithTies(Of("long row sorted", {2, 700}, 1, 700, false)),
      WithZeros(Of("long row sorted", {2, 300}, 1, 300)),
      Of("splits of the last", {6, 6, 6}, 2, 2),
      Of("splits of the first", {6, 6, 6}, 0, 1),
  };
  for (OpCase& one : family.cases) {
    if (one.inputs[0].type.shape.num_elements() > 100) one.check_gradient = false;
  }
  family.rejections = {
      {"top_k",
       {F32({5, 7})},
       {{"dim", int64_t{2}}, {"k", int64_t{1}}},
       "top_k: got dim 2, expected one of its dims: x f32[5,7]"},
      {"top_k",
       {F32({5, 7})},
       {{"dim", int64_t{1}}, {"k", int64_t{8}}},
       "top_k: got k=8, expected 1 to the 7 elements of dim 1: x f32[5,7]"},
      {"top_k",
       {I64({5}, 3)},
       {{"dim", int64_t{0}}, {"k", int64_t{1}}},
       "top_k: x is not floating-point, convert with to(x, dtype): x i64[5]"},
  };
  const auto sized = [](const char* label, const Shape& x, int64_t dim, int64_t k) {
    return Sized("top_k", label, {F32(x)}, {{"dim", dim}, {"k", k}});
  };
  family.large = {sized("rows", {70, 3000}, 1, 1), sized("columns", {300, 129}, 0, 1),
                  sized("some of rows", {33, 700}, 1, 5)};
  family.bench = {
      sized("largest of rows", {2048, 1536}, 1, 1), sized("largest of columns", {2048, 1536}, 0, 1),
      sized("40 of 50257", {8, 50257}, 1, 40), sized("sorted rows", {256, 4096}, 1, 4096)};
  family.exact_on_gpu = {"top_k"};
  return family;
}

}  // namespace zg::testing
