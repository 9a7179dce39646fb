// Sums in parts (ops/summed_parts.h): one call that has several parts gives the bits of calls with one
// part each, whose sums are added pairwise.

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "framework/kernels/kernel.h"
#include "tests/kernels/kernel_runner.h"

namespace zg::testing {
namespace {

// A tensor with the dim that the parts cut, in groups; -1: each part reads all of it.
struct Operand {
  Shape shape;
  int dim = -1;
  int64_t groups = 1;
};

struct Case {
  std::string label;
  std::string op;
  std::vector<Operand> inputs;
  std::vector<Operand> outputs;  // -1: a sum over the parts
  int64_t num_parts = 2;
  ir::Attributes attributes = {};
  int bias = -1;  // an input that only the first part adds
};

int64_t Product(const Shape& shape, int begin, int end) {
  int64_t product = 1;
  for (int dim = begin; dim < end; ++dim) product *= shape.dim(dim);
  return product;
}

// Calls f(index in the whole, index in the part) for the elements of a part.
template <typename F>
void ForElements(const Operand& operand, int64_t num_parts, int64_t part, const F& f) {
  const int64_t outer = Product(operand.shape, 0, operand.dim);
  const int64_t size = operand.shape.dim(operand.dim);
  const int64_t inner = Product(operand.shape, operand.dim + 1, operand.shape.num_dims());
  const int64_t run = size / operand.groups / num_parts;
  int64_t in_part = 0;
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t group = 0; group < operand.groups; ++group) {
      for (int64_t i = 0; i < run; ++i) {
        const int64_t index = group * (size / operand.groups) + part * run + i;
        for (int64_t j = 0; j < inner; ++j) f((o * size + index) * inner + j, in_part++);
      }
    }
  }
}

TensorType TypeOfPart(const Operand& operand, int64_t num_parts) {
  Shape shape = operand.shape;
  if (operand.dim >= 0) shape.set_dim(operand.dim, shape.dim(operand.dim) / num_parts);
  return F32(shape);
}

std::vector<std::vector<float>> RunOp(const std::string& op, const std::vector<TensorType>& inputs,
                                      const std::vector<std::vector<float>>& values,
                                      const std::vector<TensorType>& outputs,
                                      const ir::Attributes& attributes) {
  KernelRunner runner(op, inputs, outputs, attributes);
  for (size_t i = 0; i < values.size(); ++i) runner.SetInput(static_cast<int>(i), values[i]);
  EXPECT_TRUE(runner.Run().ok());
  std::vector<std::vector<float>> results;
  for (size_t i = 0; i < outputs.size(); ++i) results.push_back(runner.output(static_cast<int>(i)));
  return results;
}

class SummedPartsTest : public ::testing::TestWithParam<Case> {};

TEST_P(SummedPartsTest, HaveTheBitsOfOneCallForEach) {
  const Case& test = GetParam();
  const int64_t num_parts = test.num_parts;
  std::vector<TensorType> inputs, outputs, part_inputs, part_outputs;
  std::vector<std::vector<float>> values;
  for (const Operand& input : test.inputs) {
    inputs.push_back(F32(input.shape));
    part_inputs.push_back(TypeOfPart(input, num_parts));
    values.push_back(Random(input.shape.num_elements(), values.size() + 1, 0.2f, 1.0f));
  }
  for (const Operand& output : test.outputs) {
    outputs.push_back(F32(output.shape));
    part_outputs.push_back(TypeOfPart(output, num_parts));
  }
  std::vector<std::vector<std::vector<float>>> of_parts;
  for (int64_t part = 0; part < num_parts; ++part) {
    std::vector<std::vector<float>> own = values;
    for (size_t i = 0; i < own.size(); ++i) {
      if (test.inputs[i].dim < 0) continue;
      own[i].resize(part_inputs[i].shape.num_elements());
      ForElements(test.inputs[i], num_parts, part,
                  [&](int64_t whole, int64_t mine) { own[i][mine] = values[i][whole]; });
    }
    if (test.bias >= 0 && part > 0) own[test.bias].assign(own[test.bias].size(), 0.0f);
    of_parts.push_back(RunOp(test.op, part_inputs, own, part_outputs, test.attributes));
  }
  ir::Attributes attributes = test.attributes;
  attributes.Set("summed_parts",
                 std::vector<int64_t>{num_parts, test.inputs[0].dim, test.inputs[0].groups});
  const std::vector<std::vector<float>> got = RunOp(test.op, inputs, values, outputs, attributes);
  for (size_t i = 0; i < outputs.size(); ++i) {
    SCOPED_TRACE(::testing::Message() << "output " << i);
    std::vector<float> want(outputs[i].shape.num_elements());
    if (test.outputs[i].dim >= 0) {
      for (int64_t part = 0; part < num_parts; ++part) {
        ForElements(test.outputs[i], num_parts, part,
                    [&](int64_t whole, int64_t mine) { want[whole] = of_parts[part][i][mine]; });
      }
    } else {
      for (int64_t step = 1; step < num_parts; step *= 2) {
        for (int64_t part = 0; part < num_parts; part += 2 * step) {
          for (size_t j = 0; j < want.size(); ++j)
            of_parts[part][i][j] += of_parts[part + step][i][j];
        }
      }
      want = of_parts[0][i];
    }
    ExpectSameBits(got[i], want);
  }
}

Case RowSums(std::string label, std::string op, const Shape& x, int dim, int64_t num_parts,
             int num_statistics, int num_sums, bool adds, bool sums_rows) {
  Shape rows(std::vector<int64_t>(x.dims().begin(), x.dims().end() - 1));
  const Shape channels = {x.dim(-1)};
  Case test = {std::move(label), std::move(op), {{x, dim}, {x, dim}, {channels}}, {{x, dim}}};
  test.num_parts = num_parts;
  for (int i = 0; i < num_statistics; ++i) test.inputs.push_back({rows, dim});
  for (int i = 0; i < num_sums; ++i) test.outputs.push_back({channels});
  if (adds) {
    test.inputs.push_back({x, dim});
    test.attributes.Set("adds", true);
  }
  if (sums_rows) {
    test.outputs.push_back({channels});
    test.attributes.Set("sums", true);
  }
  return test;
}

INSTANTIATE_TEST_SUITE_P(
    Ops, SummedPartsTest,
    ::testing::Values(
        Case{"linear", "linear", {{{3, 5, 24}, 2}, {{7, 24}, 1}, {{7}}}, {{{3, 5, 7}}}, 4, {}, 2},
        Case{"linear_groups", "linear", {{{60, 24}, 1, 3}, {{50, 24}, 1, 3}}, {{{60, 50}}}, 2},
        Case{"linear_grad_input_groups",
             "linear_grad_input",
             {{{5, 48}, 1, 3}, {{48, 9}, 0, 3}},
             {{{5, 9}}},
             8},
        Case{"linear_grad_bias", "linear_grad_bias", {{{5, 12, 9}, 1}}, {{{9}}}, 4},
        Case{"linear_grad_bias_of_batches", "linear_grad_bias", {{{8, 12, 19}, 0}}, {{{19}}}, 2},
        Case{"linear_grad_bias_of_one", "linear_grad_bias", {{{50, 200, 1}, 1}}, {{{1}}}, 8},
        Case{"linear_grad_bias_wide", "linear_grad_bias", {{{3, 16, 2100}, 1}}, {{{2100}}}, 4},
        Case{"linear_grad_bias_within", "linear_grad_bias", {{{3, 4, 5, 6}, 1}}, {{{6}}}, 4},
        RowSums("layer_norm_grad", "layer_norm_grad", {5, 24, 9}, 1, 4, 2, 2, false, false),
        RowSums("layer_norm_grad_all", "layer_norm_grad", {3, 64, 17}, 1, 2, 2, 2, true, true),
        RowSums("layer_norm_grad_first", "layer_norm_grad", {96, 9}, 0, 2, 2, 2, false, true),
        RowSums("rms_norm_grad", "rms_norm_grad", {5, 24, 9}, 1, 8, 1, 1, true, false)),
    [](const auto& info) { return info.param.label; });

}  // namespace
}  // namespace zg::testing
