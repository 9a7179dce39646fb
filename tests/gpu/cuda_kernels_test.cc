// Properties of CUDA kernels before they run: needs a toolkit, but no GPU.
#include "framework/kernels/cuda/cuda_kernels.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "framework/ir/op_registry.h"
#include "framework/kernels/cpu/cpu_kernels.h"
#include "framework/kernels/cuda/kernel_util.h"
#include "framework/ops/register_all_ops.h"

namespace zg {

// The CPU's kernels.
#define ZG_OP_FAMILY(Family) void Register##Family##Kernels(KernelRegistry& registry);
#include "framework/ops/families.inc"

namespace {

TensorType F32(Shape shape) { return {DType::kF32, std::move(shape)}; }

StatusOr<std::unique_ptr<Kernel>> MakeKernel(const std::string& op, std::vector<TensorType> inputs,
                                             ir::Attributes attributes = {}) {
  RegisterAllOps();
  KernelSpec spec;
  spec.call.op = ir::OpRegistry::Global().Find(op);
  spec.call.inputs = std::move(inputs);
  spec.call.attributes = std::move(attributes);
  ZG_RETURN_IF_ERROR(ir::CompleteAttributes(spec.call.op->attributes, &spec.call.attributes));
  spec.outputs = *spec.call.op->infer_shape(spec.call);
  return CudaKernels().Make(spec);
}

std::string ErrorOf(const std::string& op, std::vector<TensorType> inputs,
                    ir::Attributes attributes = {}) {
  return MakeKernel(op, std::move(inputs), std::move(attributes)).status().message();
}

TEST(CudaKernels, EveryOpWithAKernelOnTheCpuHasOneHere) {
  KernelRegistry expected;
#define ZG_OP_FAMILY(Family) Register##Family##Kernels(expected);
#include "framework/ops/families.inc"
  RegisterAllOps();
  for (const ir::OpDef* op : ir::OpRegistry::Global().All()) {
    EXPECT_EQ(CudaKernels().Has(op->name), expected.Has(op->name)) << op->name;
    EXPECT_EQ(CudaKernels(true).Has(op->name), expected.Has(op->name)) << op->name;
  }
}

TEST(CudaKernels, RejectOtherTypes) {
  ir::OpDef op;
  op.name = "add";
  KernelSpec spec;
  spec.call.op = &op;
  spec.call.inputs = {{DType::kI32, {5}}, {DType::kI32, {5}}};
  spec.outputs = {{DType::kI32, {5}}};
  EXPECT_EQ(CudaKernels().Make(spec).status().message(),
            "add: input 0 is i32[5], the CUDA kernel takes f32, bf16, f16, i64 and bool");
}

TEST(CudaKernels, RejectWhatAttentionHasNoTilesFor) {
  const ir::Attributes one_head = {{"heads", int64_t{1}}, {"causal", true}};
  EXPECT_TRUE(MakeKernel("attention", {F32({1, 5, 3 * 256})}, one_head).ok());
  EXPECT_EQ(ErrorOf("attention", {F32({1, 5, 3 * 257})}, one_head),
            "attention: heads have 257 channels, the CUDA kernel takes up to 256");
  EXPECT_EQ(ErrorOf("attention", {F32({1, 1 << 20, 3})}, one_head),
            "attention: 1048576 positions, the CUDA kernel takes up to 1048560");
  constexpr int64_t kHeads = int64_t{1} << 31;
  EXPECT_EQ(ErrorOf("attention", {F32({1, 5, 3 * kHeads})}, {{"heads", kHeads}, {"causal", true}}),
            "attention: 2147483648 heads, the CUDA kernel takes up to 2147483647");
}

TEST(CudaKernels, RejectMorePositionsThanTheListsOfEmbeddingGradHold) {
  const int64_t num_ids = int64_t{1} << 31;
  EXPECT_EQ(ErrorOf("embedding_grad", {F32({num_ids, 1}), {DType::kI64, {num_ids}}},
                    {{"rows", int64_t{7}}}),
            "embedding_grad: 2147483648 ids, the CUDA kernel takes fewer than 2^31");
}

TEST(CudaKernels, RejectProgramsThatDoNotFitAKernelsParameters) {
  std::string program = "t0=relu(i0)";
  for (int i = 1; i < 128; ++i) program += fmt::format(";t{}=relu(t{})", i, i - 1);
  EXPECT_TRUE(MakeKernel("fused_elementwise", {F32({5})}, {{"program", program}}).ok());
  program += ";t128=relu(t127)";
  EXPECT_EQ(ErrorOf("fused_elementwise", {F32({5})}, {{"program", program}}),
            "fused_elementwise: 129 statements on 1 inputs, the CUDA kernel takes 128 on 64");
}

TEST(CudaKernels, RejectProgramsThatKeepTooMuchAtOnce) {
  std::string program = "t0=relu(i0)";
  for (int i = 1; i < 13; ++i) program += fmt::format(";t{}=relu(i0)", i);
  for (int i = 0; i < 12; ++i) {
    program += fmt::format(";t{}=add(t{},t{})", 13 + i, i == 0 ? 0 : 12 + i, i + 1);
  }
  EXPECT_EQ(ErrorOf("fused_elementwise", {F32({5})}, {{"program", program}}),
            "fused_elementwise: 13 intermediate results at once, the CUDA kernel keeps 12");
}

TEST(CudaKernels, RejectMoreScalarsThanAGuardedControlReads) {
  std::vector<TensorType> inputs(66, F32({}));
  inputs.front() = {DType::kI64, {21}};
  inputs.push_back(F32({2}));
  EXPECT_EQ(ErrorOf("guarded_update_control", inputs,
                    {{"max_norm", 0.0}, {"max_skipped", int64_t{2}}, {"weighted", false}}),
            "guarded_update_control: 65 scalars, the CUDA kernel takes up to 64");
}

TEST(CudaKernels, WordTheFaultsOfTheDevice) {
  DeviceFault fault;
  fault.got = -3;
  fault.limit = 10;
  const auto embedding = MakeKernel("embedding", {F32({10, 2}), {DType::kI64, {4}}});
  ASSERT_TRUE(embedding.ok());
  EXPECT_EQ((*embedding)->FaultText(fault), "embedding: an id is -3, the table has rows 0 to 9");
  const auto loss =
      MakeKernel("softmax_cross_entropy", {F32({4, 10}), {DType::kI64, {4}}}, {{"divisor", 4.0}});
  ASSERT_TRUE(loss.ok());
  EXPECT_EQ((*loss)->FaultText(fault),
            "softmax_cross_entropy: a target is -3, the logits have classes 0 to 9");
  const auto relu = MakeKernel("relu", {F32({4})});
  ASSERT_TRUE(relu.ok());
  EXPECT_EQ((*relu)->FaultText(fault), "bad data in node 0: got -3, the limit is 10");
}

TEST(CudaKernels, ACallMayReportAnEarlierKernel) {
  const char* const what = "a kernel could not be launched";
  EXPECT_TRUE(cuda::CudaStatus(cudaSuccess, what).ok());
  EXPECT_EQ(cuda::CudaStatus(cudaErrorInvalidConfiguration, what).message(),
            "CUDA: a kernel could not be launched: invalid configuration argument "
            "(cudaErrorInvalidConfiguration)");
  EXPECT_EQ(cuda::CudaStatus(cudaErrorIllegalAddress, what).message(),
            "CUDA: a kernel failed, this one or one queued before it (with CUDA_LAUNCH_BLOCKING=1, "
            "this one): an illegal memory access was encountered (cudaErrorIllegalAddress)");
}

}  // namespace
}  // namespace zg
