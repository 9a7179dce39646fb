#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/ops/op_case.h"

namespace zg::testing {
namespace {

ReferenceOutputs ClassPartSums(const ReferenceCall& call) {
  const ReferenceTensor& logits = call.inputs[0];
  const int64_t columns = Columns(logits);
  const int64_t own_parts = call.inputs[2].shape.dim(0);
  const int64_t part_size = columns / own_parts;
  std::vector<double> sums;
  for (int64_t part = 0; part < own_parts; ++part) {
    for (int64_t row = 0; row < RowsOf(logits); ++row) {
      const double* const begin = logits.values.data() + row * columns + part * part_size;
      const double maximum = *std::max_element(begin, begin + part_size);
      double sum = 0.0;
      for (int64_t i = 0; i < part_size; ++i) sum += std::exp(begin[i] - maximum);
      const int64_t target =
          FindInParts(call, 2, columns, static_cast<int64_t>(call.inputs[1].values[row]));
      const bool has_target = target >= 0 && target / part_size == part;
      sums.insert(sums.end(), {maximum, sum, has_target ? begin[target % part_size] : 0.0});
    }
  }
  return {sums};
}

ReferenceOutputs CrossEntropyOfParts(const ReferenceCall& call) {
  const std::vector<double>& sums = call.inputs[0].values;
  const int64_t num_parts = call.inputs[0].shape.dim(0);
  const int64_t rows = RowsOf(call.inputs[0]) / num_parts;
  double loss = 0.0;
  std::vector<double> log_sum_exp;
  for (int64_t row = 0; row < rows; ++row) {
    double sum = 0.0, target = 0.0;
    for (int64_t part = 0; part < num_parts; ++part) {
      const double* const of_part = sums.data() + 3 * (part * rows + row);
      sum += of_part[1] * std::exp(of_part[0]);
      target += of_part[2];
    }
    log_sum_exp.push_back(std::log(sum));
    loss += std::log(sum) - target;
  }
  return {{loss / call.attributes.Float("divisor")}, log_sum_exp};
}

// Logits of which a call has `own` of `parts` parts of `part_size` classes, from `first` on.
void AddCases(const std::string& label, const Shape& rows, int64_t part_size, int64_t own,
              int64_t parts, int64_t first, std::vector<OpCase>* cases) {
  std::vector<int64_t> logits = rows.dims(), sums = rows.dims();
  logits.push_back(own * part_size);
  sums.insert(sums.begin(), own);
  sums.push_back(3);
  cases->push_back(
      {.op = "class_part_sums",
       .label = label,
       .inputs = {F32(Shape(logits), -3.0, 3.0), I64(rows, parts * part_size), I64({own}, 1)},
       .attributes = {{"parts", parts}},
       .reference = ClassPartSums,
       .prepare = [first](ReferenceCall& call) { NumberParts(call, 2, first); }});
  cases->push_back({.op = "cross_entropy_of_parts",
                    .label = label,
                    .inputs = {F32(Shape(sums), 0.5, 4.0)},
                    .attributes = {{"divisor", 5.0}},
                    .reference = CrossEntropyOfParts,
                    .is_f32_only = true});
}

}  // namespace

FamilyCases ClassPartsCases() {
  FamilyCases family;
  AddCases("a part", {5}, 7, 1, 3, 1, &family.cases);
  AddCases("one row", {}, 3, 2, 2, 0, &family.cases);
  AddCases("many classes", {19}, 1003, 2, 4, 2, &family.cases);
  for (const Shape& rows : {Shape{}, Shape{6}, Shape{6, 6}}) {
    AddCases("splits", rows, 5, 6, 6, 0, &family.cases);
  }
  family.rejections = {
      {"class_part_sums",
       {F32({5, 6}), I64({6}, 6), I64({1}, 1)},
       {{"parts", int64_t{2}}},
       "class_part_sums: targets are not one i64 per row of logits: logits f32[5,6], targets "
       "i64[6], part i64[1]"},
      {"class_part_sums",
       {F32({5, 6}), I64({5}, 6), F32({1})},
       {{"parts", int64_t{2}}},
       "class_part_sums: part is not i64[n]: logits f32[5,6], targets i64[5], part f32[1]"},
      {"cross_entropy_of_parts",
       {F32({2, 5, 4})},
       {{"divisor", 5.0}},
       "cross_entropy_of_parts: expected f32[n,...,3]: sums f32[2,5,4]"},
      {"cross_entropy_of_parts",
       {F32({2, 5, 3})},
       {{"divisor", 0.0}},
       "cross_entropy_of_parts: divisor is 0, expected divisor > 0"}};
  family.bench = {Sized("class_part_sums", "half of gpt2's",
                        {F32({256, 25152}), I64({256}, 25152), I64({1}, 1)},
                        {{"parts", int64_t{2}}})};
  return family;
}

}  // namespace zg::testing
