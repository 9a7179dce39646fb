#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tests/ops/factored_reference.h"
#include "tests/ops/op_case.h"
#include "tests/ops/square_sum_reference.h"

namespace zg::testing {
namespace {

// 3x5 at 0, two of 2x3 at 16, 1x7 at 32, 20x6 at 48, which ends at 168.
const std::vector<int64_t> kMatrices = {0, 1, 3, 5, 16, 2, 2, 3, 32, 1, 1, 7, 48, 1, 20, 6};
constexpr int64_t kTensors = 4;
constexpr int64_t kRows = 3 + 4 + 1 + 20;
constexpr int64_t kColumns = 5 + 6 + 7 + 6;
constexpr int64_t kBucket = 192;
// In six parts: 12x5 by rows, 4x18 by columns, 36x4 by rows of each of three, two of 12x3 by rows.
const std::vector<int64_t> kMatricesInParts = {0,  1, 12, 5, 16, 1, 4,  18,
                                               32, 1, 36, 4, 64, 2, 12, 3};
const std::vector<int64_t> kBlocks = {10, 3, 8, 6};
constexpr int64_t kRowsInParts = 12 + 4 + 36 + 24;
constexpr int64_t kColumnsInParts = 5 + 18 + 4 + 6;
ir::Attributes Attributes(std::vector<int64_t> matrices) {
  return {{"lr", 0.25},
          {"weight_decay", 0.1},
          {"beta2_decay", -0.8},
          {"epsilon1", 0x1p-23},
          {"epsilon2", 1e-3},
          {"clip_threshold", 1.5},
          {"matrices", std::move(matrices)}};
}

ReferenceOutputs UpdateReference(const ReferenceCall& call) {
  FactoredReference update(call);
  for (size_t t = 0; t < update.matrices.tensors.size(); ++t) {
    update.Run(static_cast<int64_t>(t));
  }
  return {update.p, update.rows, update.columns};
}

void SetBegins(ReferenceCall& call) {
  std::vector<double>& begins = call.inputs.back().values;
  for (size_t i = 0; i < begins.size(); ++i) {
    begins[i] = static_cast<double>(i * call.inputs[0].values.size() / begins.size());
  }
}

// The norm of p is 0.5 + 2t, 2; the gradient's sum is below 2^kExponent, and above half of that.
void SetNorms(std::vector<double>* words) {
  words->clear();
  for (int64_t t = 0; t < kTensors; ++t) {
    for (const std::vector<double>& values :
         {std::vector<double>{0.5 + 2.0 * static_cast<double>(t), 2.0},
          std::vector<double>{25.0, static_cast<double>(t)}}) {
      const std::vector<double> own = SquareSumWords(values);
      words->insert(words->end(), own.begin(), own.end());
    }
  }
}

// Means between 0 and 1, whose low digits are negative half of the time.
void SetSums(std::vector<double>* sums) {
  const auto half = static_cast<int64_t>(sums->size() / 2);
  for (int64_t i = 0; i < half; ++i) {
    (*sums)[i] = std::ldexp(static_cast<double>(i * 7 % 13 + 1), 50 - kExponent - 2);
    (*sums)[half + i] = (i % 2 == 0 ? 1 : -1) * std::ldexp(1.0, 48);
  }
}

void SetUpdateMeasures(ReferenceCall& call) {
  SetBegins(call);
  const size_t first = call.inputs.size() - 4;
  SetNorms(&call.inputs[first].values);
  SetSums(&call.inputs[first + 1].values);
  std::vector<double>& steps = call.inputs[first + 2].values;
  steps.clear();
  for (int64_t t = 0; t < kTensors; ++t) {
    const std::vector<double> own = SquareSumWords({3.0 + static_cast<double>(9 * t), 4.0});
    steps.insert(steps.end(), own.begin(), own.end());
  }
  if (call.inputs.size() == 9) call.inputs[4].values = {0.5, 7.0};
}

void TakeMultiples(std::vector<double>* values) {
  for (double& x : *values) x = std::floor(x * 64.0) / 64.0;
}

// Squares that are multiples of the unit; padding does not count.
void SetFactorSumInputs(ReferenceCall& call) {
  SetBegins(call);
  TakeMultiples(&call.inputs[0].values);
  if (call.inputs.size() == 4) call.inputs[1].values = {0.5, 7.0};
  SetNorms(&call.inputs[call.inputs.size() - 2].values);
}

ReferenceOutputs FactorSumsReference(const ReferenceCall& call) {
  const double factor = call.inputs.size() == 4 ? call.inputs[1].values[0] : 1.0;
  const FactoredTensors matrices = MatricesOf(call);
  std::vector<double> sums(2 * (matrices.num_rows + matrices.num_columns), 0.0);
  for (int64_t t = 0; t < kTensors; ++t) {
    const FactoredTensor& tensor = matrices.tensors[t];
    for (int64_t at = 0; at < tensor.size(); ++at) {
      const double x = factor * call.inputs[0].values[PlaceOf(matrices, t, at)];
      const double units = std::ldexp(x * x, 50 - kExponent);
      const int64_t row = at / tensor.columns, matrix = row / tensor.rows;
      sums[tensor.first_row + row] += units;
      sums[matrices.num_rows + tensor.first_column + matrix * tensor.columns +
           at % tensor.columns] += units;
    }
  }
  return {sums};
}

// States that stay unchanged, for which every estimate is a power of 4: u is exact. Rows are below
// epsilon1, 1/8, by which they are divided.
void SetStepInputs(ReferenceCall& call) {
  SetBegins(call);
  TakeMultiples(&call.inputs[0].values);
  std::vector<double>& rows = call.inputs[1].values;
  for (size_t i = 0; i < rows.size(); ++i) {
    rows[i] = std::ldexp(0.125, -2 * (1 + static_cast<int>(i % 2)));
  }
  std::vector<double>& columns = call.inputs[2].values;
  for (size_t i = 0; i < columns.size(); ++i) {
    columns[i] = std::ldexp(1.0, 2 * (1 + static_cast<int>(i % 3)));
  }
  SetNorms(&call.inputs[3].values);
  SetSums(&call.inputs[4].values);
}

ReferenceOutputs StepSumsReference(const ReferenceCall& call) {
  ReferenceCall update_call = {{}, call.attributes, call.step};
  update_call.inputs = {call.inputs[0], call.inputs[0], call.inputs[1], call.inputs[2]};
  const FactoredReference update(update_call);
  std::vector<double> words;
  for (int64_t t = 0; t < kTensors; ++t) {
    const FactoredTensor& tensor = update.matrices.tensors[t];
    std::vector<double> of_tensor(kExactSumWords, 0.0);
    for (int64_t part = 0; part < tensor.parts; ++part) {  // each part has its own terms
      std::vector<double> u;
      for (int64_t at = 0; at < tensor.size(); ++at) {
        const int64_t place = PlaceOf(update.matrices, t, at);
        if (tensor.parts == 1 || place / kPartElements == part)
          u.push_back(update.Direction(t, at));
      }
      const std::vector<double> own = SquareSumWords(u);
      for (int i = 0; i < kExactSumWords; ++i) of_tensor[i] += own[i];
    }
    words.insert(words.end(), of_tensor.begin(), of_tensor.end());
  }
  return {words};
}

Shape WithDim(Shape shape, int dim, int64_t size) {
  shape.set_dim(dim, size);
  return shape;
}

OpCase OfTensor(const Shape& shape) {
  return {.op = "factored_update",
          .label = shape.ToString(),
          .inputs = {F32(shape), F32(shape), F32(WithDim(shape, -1, 1), 0.0, 1.0),
                     F32(WithDim(shape, -2, 1), 0.0, 1.0)},
          .attributes = Attributes({}),
          .reference = UpdateReference,
          .f32_inputs = {0, 2, 3}};
}

// A bucket that a mesh axis splits by parts of each tensor.
void AddCasesInParts(const InputSpec& norms, const InputSpec& steps, FamilyCases* family) {
  const InputSpec bucket = F32({kParts, kPartElements});
  const InputSpec rows = F32({kRowsInParts}, 0.0, 1.0), columns = F32({kColumnsInParts}, 0.0, 1.0);
  const InputSpec sums = I64({2, kRowsInParts + kColumnsInParts}, 2);
  const InputSpec begins = I64({kParts, 6}, kPartElements);
  ir::Attributes attributes = Attributes(kMatricesInParts);
  attributes.Set("blocks", kBlocks);
  ir::Attributes exact = attributes;
  exact.Set("epsilon1", 0.125);
  exact.Set("beta2_decay", -10000.0);
  family->cases.push_back({.op = "factored_update",
                           .label = "a bucket in parts",
                           .inputs = {bucket, bucket, rows, columns, norms, sums, steps, begins},
                           .attributes = attributes,
                           .reference = UpdateReference,
                           .prepare = SetUpdateMeasures,
                           .f32_inputs = {0, 2, 3}});
  family->cases.push_back({.op = "factor_sums",
                           .label = "a bucket in parts",
                           .inputs = {bucket, norms, begins},
                           .attributes = attributes,
                           .reference = FactorSumsReference,
                           .prepare = SetFactorSumInputs,
                           .tolerance = 0});
  family->cases.push_back({.op = "factored_step_sums",
                           .label = "a bucket in parts",
                           .inputs = {bucket, rows, columns, norms, sums, begins},
                           .attributes = exact,
                           .reference = StepSumsReference,
                           .prepare = SetStepInputs,
                           .tolerance = 0,
                           .f32_inputs = {1, 2}});
  family->rejections.push_back({"factor_sums",
                                {bucket, norms, begins},
                                Attributes(kMatricesInParts),
                                "factor_sums: got 0 numbers in `blocks` for 4 matrices in a bucket "
                                "f32[6,96], expected one for each in a bucket of several parts"});
  attributes.Set("blocks", std::vector<int64_t>{10, 3, 8, 7});
  family->rejections.push_back({"factor_sums",
                                {bucket, norms, begins},
                                attributes,
                                "factor_sums: got blocks of 7 elements for a tensor of 72 in 6 "
                                "parts, expected as many for each part"});
}

}  // namespace

FamilyCases FactoredUpdateCases() {
  FamilyCases family;
  for (const Shape& shape :
       {Shape{5, 7}, Shape{3, 4, 5}, Shape{1, 9}, Shape{9, 1}, Shape{2, 3, 1, 1}, Shape{20, 300}}) {
    family.cases.push_back(OfTensor(shape));
  }
  const InputSpec bucket = F32({kBucket});
  const InputSpec rows = F32({kRows}, 0.0, 1.0), columns = F32({kColumns}, 0.0, 1.0);
  const InputSpec norms = I64({kTensors, 2, kExactSumWords}, 2);
  const InputSpec sums = I64({2, kRows + kColumns}, 2);
  const InputSpec steps = I64({kTensors, 1, kExactSumWords}, 2);
  const InputSpec begins = I64({6}, kBucket);
  for (const bool has_control : {false, true}) {
    OpCase update = {.op = "factored_update",
                     .label = has_control ? "a bucket, with a control" : "a bucket",
                     .inputs = {bucket, bucket, rows, columns, norms, sums, steps, begins},
                     .attributes = Attributes(kMatrices),
                     .reference = UpdateReference,
                     .prepare = SetUpdateMeasures,
                     .f32_inputs = {0, 2, 3}};
    OpCase factor_sums = {.op = "factor_sums",
                          .label = update.label,
                          .inputs = {bucket, norms, begins},
                          .attributes = Attributes(kMatrices),
                          .reference = FactorSumsReference,
                          .prepare = SetFactorSumInputs,
                          .tolerance = 0};
    if (has_control) {
      update.inputs.insert(update.inputs.begin() + 4, F32({2}));
      update.f32_inputs.push_back(4);
      factor_sums.inputs.insert(factor_sums.inputs.begin() + 1, F32({2}));
      factor_sums.f32_inputs.push_back(1);
    }
    family.cases.push_back(std::move(update));
    family.cases.push_back(std::move(factor_sums));
  }
  ir::Attributes exact = Attributes(kMatrices);
  exact.Set("epsilon1", 0.125);
  exact.Set("beta2_decay", -10000.0);
  family.cases.push_back({.op = "factored_step_sums",
                          .label = "a bucket",
                          .inputs = {bucket, rows, columns, norms, sums, begins},
                          .attributes = exact,
                          .reference = StepSumsReference,
                          .prepare = SetStepInputs,
                          .tolerance = 0,
                          .f32_inputs = {1, 2}});
  family.large.push_back(OfTensor({70, 513}));
  family.bench.push_back(OfTensor({1024, 1024}));
  const std::vector<int64_t> overlapping = {0, 1, 5, 5, 16, 1, 2, 3};
  family.rejections = {
      {"factored_update",
       {F32({6}), F32({6}), F32({1}), F32({6})},
       Attributes({}),
       "factored_update: g is f32[6], expected a matrix, or a bucket and its `matrices`"},
      {"factored_update",
       {F32({2, 3}), F32({2, 3}), F32({2}), F32({1, 3})},
       Attributes({}),
       "factored_update: rows is f32[2], expected f32[2,1]"},
      {"factored_update",
       {F32({2, 3}), F32({3, 2}), F32({2, 1}), F32({1, 3})},
       Attributes({}),
       "factored_update: got p f32[2,3] and g f32[3,2], expected p in f32 and g of its shape"},
      {"factored_update",
       {bucket, bucket, rows, columns, norms, sums, begins},
       Attributes(kMatrices),
       "factored_update: got 3 measures, expected norms, factor_sums, step_sums, begins"},
      {"factor_sums",
       {bucket, norms, begins},
       Attributes(overlapping),
       "factor_sums: got a tensor of 6 elements at 16, expected it behind the one before, at a "
       "multiple of 16"},
      {"factor_sums",
       {bucket, norms, begins},
       Attributes({0, 1, 3}),
       "factor_sums: got 3 numbers in `matrices`, expected begin, count, rows and columns"},
      {"factored_step_sums",
       {bucket, rows, columns, norms, I64({2, 3}, 2), begins},
       Attributes(kMatrices),
       fmt::format("factored_step_sums: factor_sums is i64[2,3], expected i64[2,{}]",
                   kRows + kColumns)},
  };
  AddCasesInParts(norms, steps, &family);
  family.exact_on_gpu = {"factor_sums"};
  return family;
}

}  // namespace zg::testing
