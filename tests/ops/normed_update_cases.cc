#include <fmt/format.h>

#include <cmath>

#include "tests/ops/op_case.h"
#include "tests/ops/square_sum_reference.h"

namespace zg::testing {
namespace {

// m = 0.9 m + g;  p = p - lr ||p|| / ||m|| m
// Inputs of the program: 0 p, 1 g, 2 m, 3 lr, 4 weight_decay, 5 t, 6 ||t2||, 7 ||t1||.
constexpr char kProgram[] =
    "t0=scale(i2,factor=0.9);t1=add(t0,i1);t2=scale(i0,factor=1.0);t3=divide(i6,i7);"
    "t4=multiply(i3,t3);t5=multiply(t1,t4);t6=subtract(i0,t5)";
// With the number of elements of the tensor, input 8: p = p - lr ||p|| / ||m|| m / size
constexpr char kSizedProgram[] =
    "t0=scale(i2,factor=0.9);t1=add(t0,i1);t2=scale(i0,factor=1.0);t3=divide(i6,i7);"
    "t4=multiply(i3,t3);t5=divide(t4,i8);t6=multiply(t1,t5);t7=subtract(i0,t6)";
// The norms of t0 and t1 are exact in f32 for multiples of 1/64.
constexpr char kExactProgram[] =
    "t0=scale(i0,factor=1.0);t1=add(i1,i2);t2=multiply(i6,i7);t3=multiply(t0,t2)";

struct Tensor {
  int64_t begin;
  int64_t size;
};
const std::vector<Tensor> kTensors = {{0, 20}, {32, 16}, {48, 40}};
constexpr int64_t kBucket = 96;
constexpr int64_t kParts = 6;  // of a bucket in parts, which have kBucket elements each

ir::Attributes Attributes(const char* program, std::vector<int64_t> results,
                          std::vector<int64_t> norms, bool in_bucket) {
  ir::Attributes attributes = {{"lr", 0.1},
                               {"weight_decay", 0.25},
                               {"program", std::string(program)},
                               {"results", std::move(results)},
                               {"norms", std::move(norms)}};
  std::vector<int64_t> tensors;
  for (const Tensor& tensor : kTensors) {
    tensors.push_back(tensor.begin);
    tensors.push_back(tensor.size);
  }
  if (in_bucket) attributes.Set("tensors", tensors);
  return attributes;
}

double Norm(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value * value;
  return std::sqrt(sum);
}

double NormOfWords(const double* words) {
  double sum = 0;
  for (int i = 0; i < kExactSumWords - 2; ++i) sum += std::ldexp(words[i], 32 * i - 320);
  return std::sqrt(sum);
}

// For elements [begin, end).
void Step(const ReferenceCall& call, size_t begin, size_t end, double ratio, std::vector<double>* p,
          std::vector<double>* m) {
  for (size_t i = begin; i < end; ++i) {
    (*m)[i] = 0.9 * (*m)[i] + call.inputs[1].values[i];
    (*p)[i] -= 0.1 * call.step.lr_factor * ratio * (*m)[i];
  }
}

// One whole tensor, whose norms the op computes itself.
ReferenceOutputs OfTensor(const ReferenceCall& call) {
  std::vector<double> p = call.inputs[0].values, m = call.inputs[2].values;
  std::vector<double> next = m;
  for (size_t i = 0; i < m.size(); ++i) next[i] = 0.9 * m[i] + call.inputs[1].values[i];
  Step(call, 0, p.size(), Norm(p) / Norm(next), &p, &m);
  return {p, m};
}

int64_t RowsOfBucket(const ReferenceCall& call) {
  return static_cast<int64_t>(call.inputs[0].values.size()) / kBucket;
}

// Inputs: p, g, m, optionally the control {1, number}, square sums, begins.
ReferenceOutputs OfBucket(const ReferenceCall& call) {
  std::vector<double> p = call.inputs[0].values, m = call.inputs[2].values;
  const std::vector<double>& words = call.inputs[call.inputs.size() - 2].values;
  const int64_t rows = RowsOfBucket(call);
  const bool is_sized = call.attributes.String("program") == kSizedProgram;
  for (size_t t = 0; t < kTensors.size(); ++t) {
    const double* const own = words.data() + t * 2 * kExactSumWords;
    const int64_t end = t + 1 < kTensors.size() ? kTensors[t + 1].begin : kBucket;
    double ratio = NormOfWords(own) / NormOfWords(own + kExactSumWords);
    if (is_sized) ratio /= static_cast<double>(rows * kTensors[t].size);
    for (int64_t row = 0; row < rows; ++row) {
      Step(call, row * kBucket + kTensors[t].begin, row * kBucket + end, ratio, &p, &m);
    }
  }
  return {p, m};
}

ReferenceOutputs SquareSums(const ReferenceCall& call) {
  std::vector<double> words;
  for (const Tensor& tensor : kTensors) {
    std::vector<double> of_tensor(2 * kExactSumWords, 0.0);
    for (int64_t row = 0; row < RowsOfBucket(call); ++row) {
      std::vector<double> first, second;
      for (int64_t i = tensor.begin; i < tensor.begin + tensor.size; ++i) {
        const int64_t at = row * kBucket + i;
        first.push_back(call.inputs[0].values[at]);
        second.push_back(call.inputs[1].values[at] + call.inputs[2].values[at]);
      }
      const std::vector<double> of_first = SquareSumWords(first);
      const std::vector<double> of_second = SquareSumWords(second);
      for (int i = 0; i < kExactSumWords; ++i) {
        of_tensor[i] += of_first[i];
        of_tensor[kExactSumWords + i] += of_second[i];
      }
    }
    words.insert(words.end(), of_tensor.begin(), of_tensor.end());
  }
  return {words};
}

void SetBegins(ReferenceCall& call) {
  std::vector<double>& begins = call.inputs.back().values;
  const size_t elements = call.inputs[0].values.size();
  for (size_t i = 0; i < begins.size(); ++i) {
    begins[i] = static_cast<double>(i * elements / begins.size());
  }
}

void TakeMultiples(ReferenceCall& call) {
  SetBegins(call);
  for (int input : {0, 1, 2}) {
    for (double& x : call.inputs[input].values) x = std::floor(x * 64.0) / 64.0;
  }
}

void SetSums(ReferenceCall& call) {
  SetBegins(call);
  std::vector<double>& words = call.inputs[call.inputs.size() - 2].values;
  words.clear();
  for (size_t i = 0; i < kTensors.size() * 2; ++i) {
    const std::vector<double> of_one = SquareSumWords({0.5 + static_cast<double>(i), 1.5});
    words.insert(words.end(), of_one.begin(), of_one.end());
  }
  if (call.inputs.size() == 6) call.inputs[3].values = {1.0, 7.0};
}

}  // namespace

FamilyCases NormedUpdateCases() {
  FamilyCases family;
  const auto of_shape = [](const Shape& shape) {
    return OpCase{.op = "normed_update",
                  .label = shape.ToString(),
                  .inputs = {F32(shape), F32(shape), F32(shape)},
                  .attributes = Attributes(kProgram, {6, 1}, {2, 1}, false),
                  .reference = OfTensor,
                  .f32_inputs = {0, 2}};
  };
  for (const Shape& shape : {Shape{7}, Shape{5, 7}, Shape{4603}}) {
    family.cases.push_back(of_shape(shape));
  }
  family.bench.push_back(of_shape({1 << 20}));
  const InputSpec bucket = F32({kBucket});
  const InputSpec sums = I64({3, 2, kExactSumWords}, 2);
  const InputSpec begins = I64({6}, kBucket);
  for (const bool has_control : {false, true}) {
    OpCase op_case = {.op = "normed_update",
                      .label = has_control ? "a bucket, with a control" : "a bucket",
                      .inputs = {bucket, bucket, bucket, sums, begins},
                      .attributes = Attributes(kProgram, {6, 1}, {2, 1}, true),
                      .reference = OfBucket,
                      .prepare = SetSums,
                      .f32_inputs = {0, 2}};
    if (has_control) {
      op_case.inputs.insert(op_case.inputs.begin() + 3, F32({2}));
      op_case.f32_inputs.push_back(3);
    }
    family.cases.push_back(std::move(op_case));
  }
  const ir::Attributes exact = Attributes(kExactProgram, {3, 1}, {0, 1}, true);
  family.cases.push_back({.op = "tensor_square_sums",
                          .label = "a bucket",
                          .inputs = {bucket, bucket, bucket, begins},
                          .attributes = exact,
                          .reference = SquareSums,
                          .prepare = TakeMultiples,
                          .tolerance = 0,
                          .f32_inputs = {0, 2}});
  const InputSpec parts = F32({kParts, kBucket}), begins_of_parts = I64({kParts, 6}, kBucket);
  family.cases.push_back({.op = "normed_update",
                          .label = "a bucket in parts",
                          .inputs = {parts, parts, parts, sums, begins_of_parts},
                          .attributes = Attributes(kSizedProgram, {7, 1}, {2, 1}, true),
                          .reference = OfBucket,
                          .prepare = SetSums,
                          .f32_inputs = {0, 2}});
  family.cases.push_back({.op = "tensor_square_sums",
                          .label = "a bucket in parts",
                          .inputs = {parts, parts, parts, begins_of_parts},
                          .attributes = exact,
                          .reference = SquareSums,
                          .prepare = TakeMultiples,
                          .tolerance = 0,
                          .f32_inputs = {0, 2}});
  ir::Attributes overlapping = exact;
  overlapping.Set("tensors", std::vector<int64_t>{0, 20, 16, 4});
  family.rejections = {
      {"tensor_square_sums",
       {bucket, bucket, bucket, begins},
       overlapping,
       "tensor_square_sums: got a tensor of 4 elements at 16, expected it behind the one before, at a "
       "multiple of 16"},
      {"tensor_square_sums",
       {bucket, bucket, bucket, F32({6})},
       exact,
       "tensor_square_sums: got begins f32[6] for p f32[96], expected i64 of the parts of a bucket, "
       "and as many dims"},
      {"tensor_square_sums",
       {parts, parts, parts, begins},
       exact,
       "tensor_square_sums: got begins i64[6] for p f32[6,96], expected i64 of the parts of a bucket, "
       "and as many dims"},
      {"normed_update",
       {bucket, bucket, bucket, I64({3, 21}, 2), begins},
       exact,
       "normed_update: the square sums are i64[3,21], expected i64[3,2,21]"},
      {"normed_update",
       {bucket, bucket, bucket},
       Attributes("t0=multiply(i0,i6);t1=add(i1,i2)", {0, 1}, {0}, false),
       "normed_update: the norm of t0, expected one of elements that depend on no norm"}};
  return family;
}

}  // namespace zg::testing
