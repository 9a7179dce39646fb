#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "framework/base/exact_sum.h"
#include "tests/ops/op_case.h"
#include "tests/ops/square_sum_reference.h"

namespace zg::testing {
namespace {

ReferenceOutputs SquareSum(const ReferenceCall& call) {
  return {SquareSumWords(call.inputs[0].values)};
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

// Inputs: square sums, scalars, and last {updates done, updates skipped in a row}.
ReferenceOutputs GuardedUpdateControl(const ReferenceCall& call) {
  double sum = 0;
  for (size_t input = 0; input + 1 < call.inputs.size(); ++input) {
    const std::vector<double>& words = call.inputs[input].values;
    if (words.size() == 1) {
      if (!std::isfinite(words[0])) sum += NAN;
      continue;
    }
    for (int i = 0; i < kExactSumWords - 2; ++i) sum += std::ldexp(words[i], 32 * i - 320);
    if (words[kExactSumWords - 2] > 0) sum += HUGE_VAL;
  }
  const std::vector<double>& state = call.inputs.back().values;
  const double update = state[0] + 1;
  ReferenceCall of_sums = call;
  of_sums.inputs.resize(2);
  const double norm = UpdateControl(of_sums)[1][0];
  if (!std::isfinite(sum)) {
    const double shown = call.inputs[1].values[kExactSumWords - 2] > 0 ? HUGE_VAL : norm;
    return {{0.0, update}, {shown}, {state[0], state[1] + 1}};
  }
  const double max_norm = call.attributes.Float("max_norm");
  const double factor = max_norm == 0 ? 1.0 : std::min(1.0, max_norm / (norm + 1e-6));
  return {{factor, update}, {norm}, {update, 0.0}};
}

// With two square sums, of which the second counts `infinities`, and a loss.
OpCase Guarded(const char* label, double max_norm, double infinities, double loss) {
  const InputSpec words = I64({kExactSumWords}, int64_t{1} << 40);
  OpCase op_case;
  op_case.op = "guarded_update_control";
  op_case.label = label;
  op_case.inputs = {words, words, F32({}), F32({2})};
  op_case.attributes = {{"max_norm", max_norm}};
  op_case.reference = GuardedUpdateControl;
  op_case.prepare = [infinities, loss](ReferenceCall& call) {
    for (int input : {0, 1}) {
      std::vector<double> taken(kExactSumWords);
      for (int i = 8; i <= 10; ++i) taken[i] = call.inputs[input].values[i];
      call.inputs[input].values = taken;
    }
    call.inputs[1].values[kExactSumWords - 2] = infinities;
    call.inputs[2].values = {loss};
    call.inputs[3].values = {120, 3};
  };
  op_case.tolerance = 1e-6;
  op_case.f32_inputs = {2, 3};
  return op_case;
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
  for (OpCase& op_case :
       std::vector<OpCase>{Guarded("finite", 0.0, 0, 2.5), Guarded("clipped", 0.5, 0, 2.5),
                           Guarded("an infinite gradient", 0.5, 2, 2.5),
                           Guarded("an infinite loss", 0.0, 0, HUGE_VAL),
                           Guarded("the loss is NaN", 0.5, 0, NAN)}) {
    family.cases.push_back(std::move(op_case));
  }
  for (const int num_sums : {1, 4}) {
    // Small digits: if nothing is carried, parts can be compared word by word.
    family.cases.push_back(
        {.op = "add_square_sums",
         .label = fmt::format("{} sums", num_sums),
         .inputs = std::vector<InputSpec>(num_sums, I64({kExactSumWords}, 1 << 29)),
         .reference = AddSquareSums,
         .tolerance = 0});
  }
  family.rejections = {
      {"add_square_sums",
       {words, F32({kExactSumWords})},
       {},
       "add_square_sums: input 1 is f32[21], expected a square sum, i64[21]"},
      {"square_sum",
       {F32({2, 4, 4})},
       {},
       "square_sum: g is not a flat floating-point value, or several parts of one: "
       "g f32[2,4,4]"},
      {"square_sum",
       {I64({16}, 2)},
       {},
       "square_sum: g is not a flat floating-point value, or several parts of one: "
       "g i64[16]"},
      {"square_sum",
       {F32({(int64_t{1} << 35) + 16})},
       {},
       "square_sum: g has more than 2^35 elements: g f32[34359738384]"},
      {"guarded_update_control",
       {F32({}), F32({2})},
       {},
       "guarded_update_control: input 0 is f32[], expected i64[21]"},
      {"guarded_update_control",
       {words, F32({}), words, F32({2})},
       {},
       "guarded_update_control: input 2 is i64[21], expected f32[]"},
      {"guarded_update_control",
       {words, F32({4})},
       {},
       "guarded_update_control: the state is f32[4], expected f32[2]"},
      {"guarded_update_control",
       {words, F32({2})},
       {{"max_norm", -1.0}},
       "guarded_update_control: max_norm is -1, expected 0 <= max_norm"},
      {"update_control",
       {words, I64({7}, 2)},
       {},
       "update_control: input 1 is i64[7], expected a square sum, i64[21]"},
      {"update_control",
       {words},
       {{"max_norm", -1.0}},
       "update_control: max_norm is -1, expected 0 <= max_norm"}};
  family.large = {Sized("square_sum", "many blocks", {F32({300003}, -1e3, 1e3)}),
                  Sized("add_square_sums", "many", std::vector<InputSpec>(300, words))};
  family.bench = {Sized("square_sum", "bucket", {F32({4 << 20})})};
  family.exact_on_gpu = {"square_sum", "add_square_sums", "update_control",
                         "guarded_update_control"};
  return family;
}

}  // namespace zg::testing
