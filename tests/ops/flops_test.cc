// Compares a few counts of floating-point operations with the textbook's.
#include <gtest/gtest.h>

#include "framework/ir/op_registry.h"
#include "framework/ops/register_all_ops.h"

namespace zg {
namespace {

TensorType F32(Shape shape) { return {DType::kF32, std::move(shape)}; }

int64_t Flops(const std::string& name, std::vector<TensorType> inputs,
              ir::Attributes attributes = {}) {
  RegisterAllOps();
  const ir::OpDef* op = ir::OpRegistry::Global().Find(name);
  return op->flops({op, std::move(inputs), std::move(attributes)});
}

TEST(FlopsTest, AMatrixProductTakesTwoPerMultiplyAdd) {
  EXPECT_EQ(Flops("linear", {F32({2, 5, 7}), F32({3, 7})}), 2 * 10 * 7 * 3);
  EXPECT_EQ(Flops("linear", {F32({2, 5, 7}), F32({3, 7}), F32({3})}), 2 * 10 * 7 * 3 + 10 * 3);
  EXPECT_EQ(Flops("linear_grad_input", {F32({2, 5, 3}), F32({3, 7})}), 2 * 10 * 7 * 3);
  EXPECT_EQ(Flops("linear_grad_weight", {F32({2, 5, 3}), F32({2, 5, 7})}), 2 * 10 * 7 * 3);
}

TEST(FlopsTest, AConvolutionTakesTwoPerMultiplyAddAlsoOfNoChannels) {
  const ir::Attributes window = {{"stride", std::vector<int64_t>{1, 1}},
                                 {"padding", std::vector<int64_t>{0, 0}},
                                 {"dilation", std::vector<int64_t>{1, 1}},
                                 {"groups", int64_t{1}}};
  EXPECT_EQ(Flops("conv2d", {F32({2, 3, 5, 5}), F32({4, 3, 2, 2})}, window),
            2 * (2 * 4 * 4 * 4) * (3 * 2 * 2));
  EXPECT_EQ(Flops("conv2d", {F32({2, 3, 5, 5}), F32({0, 3, 2, 2})}, window), 0);
}

TEST(FlopsTest, AFusedGeluTakesWhatItTakesApart) {
  EXPECT_EQ(
      Flops("linear_gelu", {F32({2, 5, 7}), F32({3, 7}), F32({3})}),
      Flops("linear", {F32({2, 5, 7}), F32({3, 7}), F32({3})}) + Flops("gelu", {F32({2, 5, 3})}));
  EXPECT_EQ(Flops("linear_grad_input_gelu", {F32({2, 5, 3}), F32({3, 7}), F32({2, 5, 7})}),
            Flops("linear_grad_input", {F32({2, 5, 3}), F32({3, 7})}) +
                Flops("gelu_grad", {F32({2, 5, 7}), F32({2, 5, 7})}));
}

TEST(FlopsTest, AFusedChainTakesWhatItsOpsTakeApart) {
  const std::vector<TensorType> inputs = {F32({5, 7}), F32({5, 7})};
  EXPECT_EQ(
      Flops("fused_elementwise", inputs, {{"program", std::string("t0=add(i0,i1);t1=gelu(t0)")}}),
      Flops("add", inputs) + Flops("gelu", {inputs[0]}));
}

TEST(FlopsTest, CausalAttentionCountsOnlyThePairsItSees) {
  const std::vector<TensorType> qkv = {F32({2, 4, 3 * 6})};
  const int64_t all = Flops("attention", qkv, {{"heads", int64_t{3}}, {"causal", false}});
  const int64_t causal = Flops("attention", qkv, {{"heads", int64_t{3}}, {"causal", true}});
  EXPECT_EQ(all, 2 * 4 * 4 * (2 * 2 * 6 + 5 * 3));
  EXPECT_EQ(causal * 16, all * 10);  // 4 + 3 + 2 + 1 of 4 x 4 pairs
}

TEST(FlopsTest, ElementwiseOpsCountElements) {
  EXPECT_EQ(Flops("add", {F32({5, 7}), F32({5, 7})}), 35);
  EXPECT_EQ(Flops("adam_update", {F32({5}), F32({5}), F32({5}), F32({5})}), 5 * 14);
}

}  // namespace
}  // namespace zg
