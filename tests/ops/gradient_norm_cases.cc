#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "framework/base/exact_sum.h"
#include "tests/ops/op_case.h"

namespace zg::testing {
namespace {

// The digits of `term` in base 2^32, from 2^256 down to 2^-320.
void AddDigits(double term, std::vector<double>* words) {
  for (int i = kExactSumWords - 3; i >= 0; --i) {
    const double digit = std::floor(std::ldexp(term, 320 - 32 * i));
    term -= std::ldexp(digit, 32 * i - 320);
    (*words)[i] += digit;
  }
}

ReferenceOutputs SquareSum(const ReferenceCall& call) {
  const std::vector<double>& g = call.inputs[0].values;
  std::vector<double> words(kExactSumWords);
  for (size_t block = 0; block < g.size(); block += 16) {
    double s[16] = {};
    for (size_t i = 0; i < 16 && block + i < g.size(); ++i) s[i] = g[block + i] * g[block + i];
    for (int i = 0; i < 8; ++i) s[i] += s[i + 8];
    AddDigits(((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7])), &words);
  }
  return {words};
}

ReferenceOutputs AddSquareSums(const ReferenceCall& call) {
  std::vector<double> words(kExactSumWords);
  for (const ReferenceTensor& input : call.inputs) {
    for (int i = 0; i < kExactSumWords; ++i) words[i] += input.values[i];
  }
  return {words};
}

ReferenceOutputs UpdateControl(const ReferenceCall& call) {
  double sum = 0;
  for (const ReferenceTensor& input : call.inputs) {
    for (int i = 0; i < kExactSumWords - 2; ++i) {
      sum += std::ldexp(input.values[i], 32 * i - 320);
    }
  }
  const double max_norm = call.attributes.Float("max_norm");
  const double norm = std::sqrt(sum);
  const double factor = max_norm == 0 ? 1.0 : std::min(1.0, max_norm / (norm + 1e-6));
  return {{factor, static_cast<double>(call.step.step)}, {norm}};
}

// Words of sums around 2^-20 to 2^20, not carried.
void TakeWords(ReferenceCall& call) {
  for (ReferenceTensor& input : call.inputs) {
    std::vector<double> words(kExactSumWords);
    for (int i = 8; i <= 10; ++i) words[i] = input.values[i];
    input.values = words;
  }
}

}  // namespace

FamilyCases GradientNormCases() {
  FamilyCases family;
  for (const int64_t elements : {0, 1, 17, 32, 35, 96, 128, 131, 9600}) {
    family.cases.push_back({.op = "square_sum",
                            .label = Shape{elements}.ToString(),
                            .inputs = {F32({elements})},
                            .reference = SquareSum,
                            .tolerance = 0});
  }
  const InputSpec words = I64({kExactSumWords}, int64_t{1} << 40);
  for (const double max_norm : {0.0, 1.0, 1e12}) {
    for (const int num_sums : {1, 3}) {
      family.cases.push_back({.op = "update_control",
                              .label = fmt::format("{} sums, max {}", num_sums, max_norm),
                              .inputs = std::vector<InputSpec>(num_sums, words),
                              .attributes = {{"max_norm", max_norm}},
                              .reference = UpdateControl,
                              .prepare = TakeWords,
                              .tolerance = 1e-6});
    }
  }
  for (const int num_sums : {1, 4}) {
    // Small digits: where nothing is carried, parts are comparable word by word.
    family.cases.push_back(
        {.op = "add_square_sums",
         .label = fmt::format("{} sums", num_sums),
         .inputs = std::vector<InputSpec>(num_sums, I64({kExactSumWords}, 1 << 29)),
         .reference = AddSquareSums,
         .tolerance = 0});
  }
  family.rejections = {{"add_square_sums",
                        {words, F32({kExactSumWords})},
                        {},
                        "add_square_sums: input 1 is f32[21], expected a square sum, i64[21]"},
                       {"square_sum",
                        {F32({4, 4})},
                        {},
                        "square_sum: g is not a flat floating-point value: g f32[4,4]"},
                       {"square_sum",
                        {I64({16}, 2)},
                        {},
                        "square_sum: g is not a flat floating-point value: g i64[16]"},
                       {"square_sum",
                        {F32({(int64_t{1} << 35) + 16})},
                        {},
                        "square_sum: g has more than 2^35 elements: g f32[34359738384]"},
                       {"update_control",
                        {words, I64({7}, 2)},
                        {},
                        "update_control: input 1 is i64[7], expected a square sum, i64[21]"},
                       {"update_control",
                        {words},
                        {{"max_norm", -1.0}},
                        "update_control: max_norm is -1, expected 0 <= max_norm"}};
  return family;
}

}  // namespace zg::testing
