#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/kernels/kernel_runner.h"
#include "tests/testing/allocation_counter.h"

namespace zg::testing {
namespace {

TEST(AllocationCounter, Counts) {
  const AllocationCounter counter;
  auto* volatile value = new int(1);
  delete value;
  EXPECT_GE(counter.count(), 1);
}

struct Case {
  std::string op;
  std::vector<TensorType> inputs;
  std::vector<TensorType> outputs;
  ir::Attributes attributes;
  // What stays f32 in 16 bits.
  std::vector<int> f32_inputs = {};
  std::vector<int> f32_outputs = {};
};

// The types in bf16, but for those at the positions in `kept`.
std::vector<TensorType> InHalf(std::vector<TensorType> types, const std::vector<int>& kept) {
  for (size_t i = 0; i < types.size(); ++i) {
    const bool is_kept = std::find(kept.begin(), kept.end(), static_cast<int>(i)) != kept.end();
    if (types[i].dtype == DType::kF32 && !is_kept) types[i].dtype = DType::kBF16;
  }
  return types;
}

std::vector<Case> Cases() {
  const TensorType matrix = F32({40, 96}), vector = F32({96}), rows = F32({40}), scalar = F32({});
  const TensorType ids = I64({40}), wide = F32({40, 70}), weight = F32({70, 96});
  const TensorType qkv = F32({2, 100, 96}), out = F32({2, 100, 32}), per_query = F32({2, 2, 100});
  const ir::Attributes divisor = {{"divisor", 40.0}};
  const ir::Attributes dropout = {{"probability", 0.1}, {"stream", int64_t{1}}};
  const ir::Attributes heads = {{"heads", int64_t{2}}, {"causal", true}};
  const ir::Attributes momentum = {
      {"lr", 0.1}, {"momentum", 0.9}, {"weight_decay", 0.1}, {"nesterov", true}};
  const ir::Attributes adam = {{"lr", 0.01},      {"beta1", 0.9},        {"beta2", 0.999},
                               {"epsilon", 1e-8}, {"weight_decay", 0.1}, {"decoupled", true}};
  return {
      {"add", {matrix, matrix}, {matrix}, {}},
      {"subtract", {matrix, matrix}, {matrix}, {}},
      {"multiply", {matrix, matrix}, {matrix}, {}},
      {"scale", {matrix}, {matrix}, {{"factor", 2.0}}},
      {"relu", {matrix}, {matrix}, {}},
      {"relu_grad", {matrix, matrix}, {matrix}, {}},
      {"gelu", {matrix}, {matrix}, {}},
      {"gelu_grad", {matrix, matrix}, {matrix}, {}},
      {"fused_elementwise", {matrix}, {matrix}, {{"program", std::string("t0=relu(i0)")}}},
      {"add_broadcast", {matrix, vector}, {matrix}, {}},
      {"sum_leading", {matrix}, {vector}, {{"shape", Shape{96}}}},
      {"dropout", {matrix}, {matrix}, dropout},
      {"dropout_grad", {matrix}, {matrix}, dropout},
      {"embedding", {weight, ids}, {matrix}, {}},
      {"embedding_grad", {matrix, ids}, {weight}, {{"rows", int64_t{70}}}},
      {"layer_norm",
       {matrix, vector, vector},
       {matrix, rows, rows},
       {{"epsilon", 1e-5}},
       {},
       {1, 2}},
      {"layer_norm_grad",
       {matrix, matrix, vector, rows, rows},
       {matrix, vector, vector},
       {},
       {3, 4}},
      {"linear", {matrix, weight, F32({70})}, {wide}, {}},
      {"linear_grad_input", {wide, weight}, {matrix}, {}},
      {"linear_gelu", {matrix, weight, F32({70})}, {wide, wide}, {}},
      {"linear_grad_input_gelu", {wide, weight, matrix}, {matrix}, {}},
      {"linear_grad_weight", {wide, matrix}, {weight}, {}},
      {"linear_grad_bias", {wide}, {F32({70})}, {}},
      {"attention", {qkv}, {out, per_query}, heads, {}, {1}},
      {"attention_grad", {out, qkv, out, per_query}, {qkv}, heads, {3}},
      {"mse_loss", {matrix, matrix}, {scalar}, divisor, {1}, {0}},
      {"mse_loss_grad", {scalar, matrix, matrix}, {matrix}, divisor, {0, 2}},
      {"softmax_cross_entropy", {matrix, ids}, {scalar, rows}, divisor, {}, {0, 1}},
      {"softmax_cross_entropy_grad", {scalar, matrix, ids, rows}, {matrix}, divisor, {0, 3}},
      {"sgd_update", {matrix, matrix}, {matrix}, {{"lr", 0.1}, {"weight_decay", 0.1}}, {0}, {0}},
      {"sgd_momentum_update", {matrix, matrix, matrix}, {matrix, matrix}, momentum, {0, 2}, {0, 1}},
      {"adam_update",
       {matrix, matrix, matrix, matrix},
       {matrix, matrix, matrix},
       adam,
       {0, 2, 3},
       {0, 1, 2}},
      {"adam_update",
       {matrix, matrix, matrix, matrix, F32({2})},
       {matrix, matrix, matrix},
       adam,
       {0, 2, 3, 4},
       {0, 1, 2}},
      {"square_sum", {vector}, {I64({21})}, {}},
      {"add_square_sums", {I64({21}), I64({21})}, {I64({21})}, {}},
      {"update_control",
       {I64({21}), I64({21})},
       {F32({2}), scalar},
       {{"max_norm", 1.0}},
       {},
       {0, 1}},
      {"cast", {matrix}, {matrix}, {}, {0}},
      {"constant", {}, {scalar}, {{"value", 1.0}}, {}, {0}},
      {"bucket_pack",
       {vector},
       {F32({128})},
       {{"offsets", std::vector<int64_t>{8}}, {"size", int64_t{128}}}},
      {"accumulate", {matrix, matrix}, {matrix}, {}, {0}, {0}},
  };
}

TEST(Kernels, AllocateNothingWhileTheyRun) {
  std::vector<Case> cases = Cases();
  for (Case test : Cases()) {
    test.inputs = InHalf(test.inputs, test.f32_inputs);
    test.outputs = InHalf(test.outputs, test.f32_outputs);
    cases.push_back(test);
  }
  for (const Case& test : cases) {
    KernelRunner runner(test.op, test.inputs, test.outputs, test.attributes);
    for (size_t i = 0; i < test.inputs.size(); ++i) {
      const int64_t count = test.inputs[i].shape.num_elements();
      if (test.inputs[i].dtype == DType::kI64) {
        runner.SetInput(static_cast<int>(i), RandomIds(count, 70));
      } else {
        runner.SetInput(static_cast<int>(i), Random(count, i));
      }
    }
    const AllocationCounter counter;
    const Status status = runner.RunKernelAlone();
    EXPECT_EQ(counter.count(), 0) << test.op;
    EXPECT_TRUE(status.ok()) << status.message();
  }
}

}  // namespace
}  // namespace zg::testing
