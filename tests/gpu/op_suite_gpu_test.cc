// Compares every op with CUDA kernels with the CPU: all cases of the families in tests/ops, in f32,
// bf16 and f16; in place, misaligned, twice; and the reports of bad data.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>

#include "framework/ir/op_registry.h"
#include "framework/kernels/cuda/cuda_kernels.h"
#include "framework/kernels/cuda/matmul.h"
#include "framework/ops/register_all_ops.h"
#include "tests/gpu/cuda_runner.h"
#include "tests/ops/op_suite.h"
#include "tests/testing/interpreter.h"

namespace zg::testing {
namespace {

double RoundingError(DType dtype) {
  return dtype == DType::kF32 ? 0.0 : dtype == DType::kBF16 ? 0x1p-8 : 0x1p-11;
}

// "" or the first element that differs. Signs and payloads of NaNs may differ: IEEE 754 leaves them
// open, and a GPU makes other ones than a CPU.
std::string BitDifference(const HeapTensor& got, const HeapTensor& expected) {
  if (SameBits(got, expected)) return "";
  if (got.type() != expected.type() || !IsFloat(got.type().dtype)) return "not the same bits";
  const std::vector<double> got_values = got.ToDoubles();
  const std::vector<double> expected_values = expected.ToDoubles();
  for (size_t i = 0; i < got_values.size(); ++i) {
    if (std::isnan(got_values[i]) && std::isnan(expected_values[i])) continue;
    if (std::memcmp(&got_values[i], &expected_values[i], sizeof(double)) == 0) continue;
    return fmt::format("element {} of {}: got {:a}, expected {:a}", i, got_values.size(),
                       got_values[i], expected_values[i]);
  }
  return "";
}

// How many times a result is rounded: linear_gelu rounds the product, and then its GELU.
int RoundingsOf(const OpCase& op_case) {
  return op_case.op == "linear_gelu" || op_case.rounds_terms ? 2 : 1;
}

// Expects the CPU's bits, or results that differ by their rounding.
void ExpectLikeCpu(const OpCase& op_case, const std::vector<HeapTensor>& got,
                   const std::vector<HeapTensor>& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    if (IsExactOnGpu(op_case.op)) {
      EXPECT_EQ(BitDifference(got[i], expected[i]), "") << "output " << i;
    }
    const double tolerance =
        op_case.tolerance + 2 * RoundingsOf(op_case) * RoundingError(got[i].type().dtype);
    EXPECT_TRUE(IsClose(got[i].ToDoubles(), expected[i].ToDoubles(), tolerance)) << "output " << i;
  }
}

// Calls check(op_case, concrete) for each case of the op in every dtype that makes a difference.
template <typename Check>
void ForEachCase(const std::string& op, const Check& check) {
  std::vector<const OpCase*> cases = CasesOf(op);
  for (const OpCase* large : LargeCasesOf(op)) cases.push_back(large);
  EXPECT_FALSE(cases.empty());
  for (const OpCase* op_case : cases) {
    for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) {
      SCOPED_TRACE(fmt::format("{}, {}", op_case->label, DTypeName(dtype)));
      const OpCase typed = InHalf(*op_case, dtype);
      const ConcreteCase concrete(typed);
      const bool differs =
          std::any_of(typed.inputs.begin(), typed.inputs.end(),
                      [&](const InputSpec& input) { return input.type.dtype == dtype; });
      if (dtype == DType::kF32 || differs) check(typed, concrete);
    }
  }
}

class OpSuiteGpu : public OpSuite {};

std::vector<std::string> OpsWithKernels() {
  std::vector<std::string> names;
  for (const std::string& op : KernelOpNames()) {
    if (CudaKernels().Has(op)) names.push_back(op);
  }
  return names;
}
INSTANTIATE_TEST_SUITE_P(Ops, OpSuiteGpu, ::testing::ValuesIn(OpsWithKernels()),
                         [](const auto& info) { return info.param; });

CudaRun SuiteRun() {
  CudaRun run;
  run.step = SuiteStep();
  return run;
}

TEST_P(OpSuiteGpu, MatchesCpu) {
  ForEachCase(GetParam(), [](const OpCase& op_case, const ConcreteCase& concrete) {
    const std::vector<HeapTensor> expected = concrete.Run(concrete.inputs());
    const CudaResult result = RunOnCuda(concrete.call(), concrete.inputs(), SuiteRun());
    ASSERT_TRUE(result.status.ok()) << result.status.ToString();
    EXPECT_EQ(result.fault, "");
    ExpectLikeCpu(op_case, result.outputs, expected);
    // An emulated device has three orders of threads, and takes the next one for each run.
    for (int repetition = 0; repetition < 2; ++repetition) {
      const CudaResult again = RunOnCuda(concrete.call(), concrete.inputs(), SuiteRun());
      ASSERT_TRUE(again.status.ok()) << again.status.ToString();
      ASSERT_EQ(again.outputs.size(), result.outputs.size());
      for (size_t i = 0; i < result.outputs.size(); ++i) {
        EXPECT_TRUE(SameBits(again.outputs[i], result.outputs[i])) << "output " << i;
      }
    }
  });
}

TEST_P(OpSuiteGpu, MatchesCpuMisaligned) {
  ForEachCase(GetParam(), [](const OpCase& op_case, const ConcreteCase& concrete) {
    const std::vector<HeapTensor> expected = concrete.Run(concrete.inputs());
    CudaRun run = SuiteRun();
    run.misaligned_elements = 1;
    const CudaResult result = RunOnCuda(concrete.call(), concrete.inputs(), run);
    ASSERT_TRUE(result.status.ok()) << result.status.ToString();
    ExpectLikeCpu(op_case, result.outputs, expected);
  });
}

TEST_P(OpSuiteGpu, InPlaceGivesTheSameBits) {
  ForEachCase(GetParam(), [](const OpCase&, const ConcreteCase& concrete) {
    const ir::OpDef& op = *concrete.call().op;
    if (op.aliases == nullptr) return;
    const CudaResult expected = RunOnCuda(concrete.call(), concrete.inputs(), SuiteRun());
    for (const ir::AliasRule& rule : op.aliases(concrete.call())) {
      if (rule.kind != ir::AliasRule::Kind::kInPlace) continue;
      const int64_t input_bytes = concrete.inputs()[rule.input].type().bytes();
      if (input_bytes != expected.outputs[rule.output].type().bytes()) continue;
      SCOPED_TRACE(fmt::format("output {} over input {}", rule.output, rule.input));
      CudaRun run = SuiteRun();
      run.in_place[rule.output] = rule.input;
      const CudaResult result = RunOnCuda(concrete.call(), concrete.inputs(), run);
      ASSERT_TRUE(result.status.ok()) << result.status.ToString();
      for (size_t i = 0; i < expected.outputs.size(); ++i) {
        EXPECT_TRUE(SameBits(result.outputs[i], expected.outputs[i])) << "output " << i;
      }
    }
  });
}

TEST(CudaKernelsOnTheDevice, AccumulateOverwritesInTheFirstMicroStep) {
  RegisterAllOps();
  ir::OpCall call;
  call.op = ir::OpRegistry::Global().Find("accumulate");
  call.inputs = {{DType::kF32, {5}}, {DType::kBF16, {5}}};
  const std::vector<double> gradient = {1, 2, 3, 4, 5};
  const std::vector<HeapTensor> inputs = {HeapTensor(call.inputs[0]),  // NaNs
                                          HeapTensor::FromDoubles(call.inputs[1], gradient)};
  CudaRun run = SuiteRun();
  run.step.first_micro_step = true;
  const CudaResult result = RunOnCuda(call, inputs, run);
  ASSERT_TRUE(result.status.ok()) << result.status.ToString();
  EXPECT_EQ(result.outputs[0].ToDoubles(), gradient);
}

TEST(CudaKernelsOnTheDevice, CopiesOfUpdatedParametersAreCasts) {
  RegisterAllOps();
  constexpr int64_t kSize = 70003;
  const TensorType type = {DType::kF32, {kSize}};
  std::vector<double> values;
  for (int64_t i = 0; i < kSize; ++i) values.push_back(std::sin(static_cast<double>(i)));
  const HeapTensor state = HeapTensor::FromDoubles(type, values);
  for (const DType dtype : {DType::kBF16, DType::kF16}) {
    for (const int64_t misaligned : {0, 1}) {
      ir::OpCall call;
      call.op = ir::OpRegistry::Global().Find("sgd_momentum_update");
      call.inputs = {type, type, type};
      call.attributes = {
          {"lr", 0.1}, {"momentum", 0.9}, {"weight_decay", 0.1}, {"copy_dtype", dtype}};
      call.attributes.Set("nesterov", false);
      call.attributes.Set("group", int64_t{0});
      CudaRun run = SuiteRun();
      run.misaligned_elements = misaligned;
      const CudaResult result = RunOnCuda(call, {state, state, state}, run);
      ASSERT_TRUE(result.status.ok()) << result.status.ToString();
      EXPECT_TRUE(SameBits(result.outputs[2], HeapTensor::FromDoubles(
                                                  {dtype, {kSize}}, result.outputs[0].ToDoubles())))
          << DTypeName(dtype);
    }
  }
}

TEST(CudaKernelsOnTheDevice, Tf32RoundsOperandsOfProductsWhereAskedFor) {
  RegisterAllOps();
  constexpr int64_t kSize = 64;
  constexpr double kElement = 1.0 + 0x1p-12;  // 1 in TF32
  ir::OpCall call;
  call.op = ir::OpRegistry::Global().Find("linear");
  call.inputs = {{DType::kF32, {kSize, kSize}}, {DType::kF32, {kSize, kSize}}};
  const auto filled = [&](double value) {
    return HeapTensor::FromDoubles(call.inputs[0], std::vector<double>(kSize * kSize, value));
  };
  for (const bool tf32 : {false, true}) {
    CudaRun run = SuiteRun();
    run.tf32 = tf32;
    const CudaResult result = RunOnCuda(call, {filled(kElement), filled(1.0)}, run);
    ASSERT_TRUE(result.status.ok()) << result.status.ToString();
    EXPECT_EQ(result.outputs[0].ToDoubles()[0], kSize * (tf32 ? 1.0 : kElement)) << tf32;
  }
}

// linear_gelu and its gradient use these; without them they would be correct, but slow.
TEST(CudaKernelsOnTheDevice, ProductsIn16BitsHaveEpiloguesForGelu) {
  for (const DType dtype : {DType::kBF16, DType::kF16}) {
    for (const bool has_bias : {true, false}) {
      SCOPED_TRACE(fmt::format("{}, bias {}", DTypeName(dtype), has_bias));
      cuda::MatmulShape shape;
      shape.rows = shape.columns = shape.depth = 768;
      shape.dtype = dtype;
      shape.transpose_b = true;
      shape.has_bias = has_bias;
      shape.epilogue = cuda::MatmulEpilogue::kGelu;
      const auto gelu = cuda::Matmul::MakeIfKnown(shape, /*choices=*/nullptr);
      ASSERT_TRUE(gelu.ok()) << gelu.status().message();
      EXPECT_NE(*gelu, nullptr);
      if (has_bias) continue;
      shape.transpose_b = false;
      shape.epilogue = cuda::MatmulEpilogue::kGeluGrad;
      const auto gelu_grad = cuda::Matmul::MakeIfKnown(shape, /*choices=*/nullptr);
      ASSERT_TRUE(gelu_grad.ok()) << gelu_grad.status().message();
      EXPECT_NE(*gelu_grad, nullptr);
    }
  }
}

HeapTensor Ids(const std::vector<double>& ids) {
  return HeapTensor::FromDoubles({DType::kI64, {static_cast<int64_t>(ids.size())}}, ids);
}
HeapTensor Zeros(Shape shape) {
  const std::vector<double> zeros(shape.num_elements());
  return HeapTensor::FromDoubles({DType::kF32, std::move(shape)}, zeros);
}

// The fault of an op on these inputs.
std::string FaultOf(const std::string& op, const std::vector<HeapTensor>& inputs,
                    ir::Attributes attributes = {}, bool stop_on_non_finite = false) {
  RegisterAllOps();
  ir::OpCall call;
  call.op = ir::OpRegistry::Global().Find(op);
  call.attributes = std::move(attributes);
  EXPECT_TRUE(ir::CompleteAttributes(call.op->attributes, &call.attributes).ok());
  for (const HeapTensor& input : inputs) call.inputs.push_back(input.type());
  CudaRun run = SuiteRun();
  run.step.stop_on_non_finite = stop_on_non_finite;
  const CudaResult result = RunOnCuda(call, inputs, run);
  EXPECT_TRUE(result.status.ok()) << result.status.ToString();
  return result.fault;
}

TEST(CudaKernelsOnTheDevice, SayWhichIdIsOutOfRange) {
  EXPECT_EQ(FaultOf("embedding", {Zeros({5, 3}), Ids({0, 5, 4})}),
            "embedding: an id is 5, the table has rows 0 to 4");
  EXPECT_EQ(FaultOf("embedding", {Zeros({5, 3}), Ids({0, -1})}),
            "embedding: an id is -1, the table has rows 0 to 4");
  EXPECT_EQ(FaultOf("embedding_grad", {Zeros({2, 3}), Ids({0, 9})}, {{"rows", int64_t{4}}}),
            "embedding_grad: an id is 9, the table has rows 0 to 3");
}

// Which thread comes first is not known; the message is.
TEST(CudaKernelsOnTheDevice, SayTheSameOfSeveralFaults) {
  std::vector<double> ids;
  for (int i = 0; i < 600; ++i) ids.push_back(5 + i % 7 + (i == 400 ? 30 : 0));
  const std::vector<HeapTensor> inputs = {Zeros({5, 3}), Ids(ids)};
  EXPECT_EQ(FaultOf("embedding", inputs), "embedding: an id is 36, the table has rows 0 to 4");
  ids[300] = -2;
  ids[500] = -7;
  EXPECT_EQ(FaultOf("softmax_cross_entropy", {Zeros({600, 3}), Ids(ids)}, {{"divisor", 1.0}}),
            "softmax_cross_entropy: a target is -2, the logits have classes 0 to 2");
}

TEST(CudaKernelsOnTheDevice, SayWhichTargetIsOutOfRange) {
  EXPECT_EQ(FaultOf("softmax_cross_entropy", {Zeros({2, 3}), Ids({0, 3})}, {{"divisor", 1.0}}),
            "softmax_cross_entropy: a target is 3, the logits have classes 0 to 2");
  EXPECT_EQ(FaultOf("softmax_cross_entropy_grad",
                    {Zeros({}), Zeros({2, 3}), Ids({-2, 0}), Zeros({2})}, {{"divisor", 1.0}}),
            "softmax_cross_entropy_grad: a target is -2, the logits have classes 0 to 2");
  EXPECT_EQ(FaultOf("softmax_cross_entropy_with_grad", {Zeros({}), Zeros({2, 3}), Ids({3, 0})},
                    {{"divisor", 1.0}}),
            "softmax_cross_entropy: a target is 3, the logits have classes 0 to 2");
}

TEST(CudaKernelsOnTheDevice, SayThatTooManyStepsWereLeftOut) {
  std::vector<double> infinite(21, 0.0);
  infinite[19] = 1.0;  // one infinite term
  const HeapTensor sums = Ids(infinite);
  const HeapTensor state = HeapTensor::FromDoubles({DType::kF32, {4}}, {-3, 0, 7, 2});
  const ir::Attributes attributes = {{"max_norm", 0.0},
                                     {"growth_interval", int64_t{10}},
                                     {"max_skipped", int64_t{2}},
                                     {"initial_exponent", int64_t{16}},
                                     {"weighted", false}};
  EXPECT_EQ(FaultOf("scaled_update_control", {sums, state}, attributes),
            "the gradients were not finite in 3 steps in a row, down to a loss scale of 2^13\n"
            "  hint: lower the learning rate, clip gradients, or compute in bf16 or f32");
}

TEST(CudaKernelsOnTheDevice, SayThatTooManyGuardedStepsWereLeftOut) {
  const HeapTensor sums = Ids(std::vector<double>(21, 0.0));
  const HeapTensor loss = HeapTensor::FromDoubles({DType::kF32, {}}, {std::nan("")});
  const HeapTensor state = HeapTensor::FromDoubles({DType::kF32, {2}}, {7, 2});
  EXPECT_EQ(FaultOf("guarded_update_control", {sums, loss, state},
                    {{"max_norm", 0.0}, {"max_skipped", int64_t{2}}, {"weighted", false}}),
            "the loss or a gradient was not finite in 3 steps in a row, whose updates were left "
            "out\n  hint: lower the learning rate or look at the data; `detect_anomaly` names the "
            "first node");
}

TEST(CudaKernelsOnTheDevice, SayThatAnUpdatedParameterIsNotFiniteWhereThatIsAsked) {
  std::vector<double> gradient(1000, 1.0);
  const ir::Attributes sgd = {{"lr", 1.0}, {"weight_decay", 0.0}};
  const TensorType type = {DType::kF32, {1000}};
  EXPECT_EQ(FaultOf("sgd_update", {Zeros({1000}), HeapTensor::FromDoubles(type, gradient)}, sgd,
                    /*stop_on_non_finite=*/true),
            "");
  gradient[777] = std::numeric_limits<double>::infinity();
  const HeapTensor infinite = HeapTensor::FromDoubles(type, gradient);
  EXPECT_EQ(FaultOf("sgd_update", {Zeros({1000}), infinite}, sgd, /*stop_on_non_finite=*/true),
            "an updated parameter is not finite");
  EXPECT_EQ(FaultOf("sgd_update", {Zeros({1000}), infinite}, sgd), "");
}

}  // namespace
}  // namespace zg::testing
