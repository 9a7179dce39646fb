#include <algorithm>

#include "tests/ops/op_case.h"

namespace zg::testing {
namespace {

ReferenceOutputs Search(const ReferenceCall& call) {
  const ReferenceTensor& sorted = call.inputs[0];
  const ReferenceTensor& values = call.inputs[1];
  const int64_t size = sorted.shape.dim(-1);
  std::vector<double> y;
  for (int64_t i = 0; i < values.shape.num_elements(); ++i) {
    const int64_t row = sorted.shape.num_dims() == 1 ? 0 : i / values.shape.dim(-1);
    y.push_back(0.0);
    for (int64_t k = row * size; k < (row + 1) * size; ++k) {
      const double element = sorted.values[k], value = values.values[i];
      y.back() +=
          element < value || (element == value && call.attributes.Bool("right")) ? 1.0 : 0.0;
    }
  }
  return {y};
}

void SortRows(ReferenceCall& call) {
  ReferenceTensor& sorted = call.inputs[0];
  const int64_t size = sorted.shape.dim(-1);
  for (auto row = sorted.values.begin(); row < sorted.values.end(); row += size) {
    std::sort(row, row + size);
  }
}

void AddCases(const std::string& label, const Shape& sorted, const Shape& values,
              FamilyCases* family) {
  for (const bool right : {false, true}) {
    for (const bool whole : {false, true}) {
      family->cases.push_back(
          {.op = "searchsorted",
           .label = label + (whole ? ", of integers" : "") + (right ? ", right" : ""),
           .inputs = whole ? std::vector<InputSpec>{I64(sorted, 5), I64(values, 5)}
                           : std::vector<InputSpec>{F32(sorted), F32(values)},
           .attributes = {{"right", right}},
           .reference = Search,
           .prepare = SortRows,
           .tolerance = 0});
    }
  }
}

}  // namespace

FamilyCases SearchsortedCases() {
  FamilyCases family;
  AddCases("a vector", {7}, {3, 5}, &family);
  AddCases("one element", {1}, {5}, &family);
  AddCases("rows", {3, 7}, {3, 5}, &family);
  AddCases("splits of a vector", {6}, {6}, &family);
  AddCases("splits of values", {6}, {6, 6}, &family);
  AddCases("splits of rows", {6, 6}, {6, 6}, &family);
  AddCases("splits of more", {6, 6, 6}, {6, 6, 12}, &family);
  AddCases("splits of many values", {6}, {6, 6, 6}, &family);
  family.rejections = {
      {"searchsorted",
       {F32({5, 7}), F32({4, 7})},
       {},
       "searchsorted: expected sorted sequences for the same leading dims as the values, or a vector: "
       "sorted f32[5,7], values f32[4,7]"},
      {"searchsorted",
       {I64({7}, 3), F32({4, 7})},
       {},
       "searchsorted: dtypes differ: sorted i64[7], values f32[4,7]"},
      {"searchsorted",
       {Bool({7}), Bool({7})},
       {},
       "searchsorted: sorted is not floating-point, convert with to(x, dtype): "
       "sorted bool[7], values bool[7]"},
  };
  family.large = {Sized("searchsorted", "a vector", {F32({129}), F32({70, 300})})};
  family.bench = {Sized("searchsorted", "a vector", {F32({129}), F32({2048, 1536})})};
  family.exact_on_gpu = {"searchsorted"};
  return family;
}

}  // namespace zg::testing
