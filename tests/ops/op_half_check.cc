// For every compute op in bf16 and f16: the kernel computes the result of the f32 kernel on the
// same numbers, rounded once (products of bf16 are added in the processor's way; the results agree
// only approximately if terms of sums are rounded, too). It does so in place as well, and agrees
// with the plain reference.
#include <fmt/format.h>

#include <algorithm>

#include "framework/ir/op_registry.h"
#include "framework/ops/addend.h"
#include "framework/ops/elementwise_program.h"
#include "tests/ops/op_suite.h"
#include "tests/testing/interpreter.h"

namespace zg::testing {
namespace {

using OpHalfTest = OpSuite;
ZG_INSTANTIATE_OP_SUITE(OpHalfTest);

bool IsHalf(const HeapTensor& tensor) {
  return IsFloat(tensor.type().dtype) && tensor.type().dtype != DType::kF32;
}

HeapTensor InF32(const HeapTensor& tensor) {
  TensorType type = tensor.type();
  if (IsFloat(type.dtype)) type.dtype = DType::kF32;
  return HeapTensor::FromDoubles(type, tensor.ToDoubles());
}

// The results of the f32 kernel for the case's inputs, in the types of `outputs`.
std::vector<HeapTensor> RoundedF32Results(const ConcreteCase& concrete,
                                          const std::vector<HeapTensor>& outputs) {
  ir::OpCall call = concrete.call();
  std::vector<HeapTensor> inputs;
  for (const HeapTensor& input : concrete.inputs()) inputs.push_back(InF32(input));
  for (size_t i = 0; i < inputs.size(); ++i) call.inputs[i] = inputs[i].type();
  StatusOr<std::vector<HeapTensor>> results = Execute(Kernels(), call, inputs, SuiteStep());
  if (!results.ok() || results->size() != outputs.size()) {
    ADD_FAILURE() << results.status().ToString();
    return {};
  }
  std::vector<HeapTensor> rounded;
  for (size_t i = 0; i < outputs.size(); ++i) {
    rounded.push_back(HeapTensor::FromDoubles(outputs[i].type(), (*results)[i].ToDoubles()));
  }
  return rounded;
}

// The statements of a fused_elementwise node as separate ops, one after the other.
std::vector<HeapTensor> SeparateStatements(const ConcreteCase& concrete) {
  const StatusOr<ElementwiseProgram> program =
      ParseElementwiseProgram(concrete.call().attributes.String("program"),
                              static_cast<int>(concrete.call().inputs.size()));
  EXPECT_TRUE(program.ok()) << program.status().ToString();
  const std::vector<HeapTensor> inputs = concrete.inputs();
  std::vector<HeapTensor> results;
  for (const ElementwiseStatement& statement : *program) {
    ir::OpCall call;
    call.op = ir::OpRegistry::Global().Find(statement.op->op);
    std::vector<HeapTensor> operands;
    for (const ElementwiseOperand& operand : statement.operands) {
      operands.push_back(operand.is_input ? inputs[operand.index] : results[operand.index]);
      call.inputs.push_back(operands.back().type());
    }
    if (!statement.op->attribute.empty()) {
      call.attributes.Set(std::string(statement.op->attribute), statement.attribute);
    }
    StatusOr<std::vector<HeapTensor>> outputs = Execute(Kernels(), call, operands, SuiteStep());
    EXPECT_TRUE(outputs.ok()) << outputs.status().ToString();
    results.push_back((*outputs)[0]);
  }
  return {results.back()};
}

std::vector<HeapTensor> RunOp(const std::string& op, const std::vector<HeapTensor>& inputs) {
  ir::OpCall call;
  call.op = ir::OpRegistry::Global().Find(op);
  for (const HeapTensor& input : inputs) call.inputs.push_back(input.type());
  StatusOr<std::vector<HeapTensor>> outputs = Execute(Kernels(), call, inputs, SuiteStep());
  EXPECT_TRUE(outputs.ok()) << outputs.status().ToString();
  return *std::move(outputs);
}

// The op's own result, then the addition, then the sum over rows.
std::vector<HeapTensor> SeparateAdditions(const ConcreteCase& concrete) {
  const ir::OpCall call = WithoutAddend(concrete.call());
  ir::OpCall alone = call;
  const bool sums = call.attributes.Has("sums") && call.attributes.Bool("sums");
  if (sums) alone.attributes.Set("sums", false);
  std::vector<HeapTensor> inputs = concrete.inputs();
  const HeapTensor last = inputs.back();
  inputs.resize(call.inputs.size());
  StatusOr<std::vector<HeapTensor>> results = Execute(Kernels(), alone, inputs, SuiteStep());
  EXPECT_TRUE(results.ok()) << results.status().ToString();
  if (AddendOf(concrete.call()) >= 0) (*results)[0] = RunOp("add", {(*results)[0], last})[0];
  if (sums) results->push_back(RunOp("linear_grad_bias", {(*results)[0]})[0]);
  return *std::move(results);
}

// The ops that a fused op consists of, one after the other.
std::vector<HeapTensor> SeparateResults(const ConcreteCase& concrete) {
  const std::string& op = concrete.call().op->name;
  const std::vector<HeapTensor> inputs = concrete.inputs();
  if (op == "linear_gelu") {
    const HeapTensor h = RunOp("linear", inputs)[0];
    return {RunOp("gelu", {h})[0], h};
  }
  if (op == "linear_grad_input_gelu") {
    const HeapTensor dy = RunOp("linear_grad_input", {inputs[0], inputs[1]})[0];
    return RunOp("gelu_grad", {dy, inputs[2]});
  }
  const ir::OpTraits& traits = concrete.call().op->traits;
  if (traits.takes_addend || traits.sums_rows) return SeparateAdditions(concrete);
  return SeparateStatements(concrete);
}

// Half of the distance between numbers around 1.
double RoundingError(DType dtype) { return dtype == DType::kBF16 ? 0x1p-8 : 0x1p-11; }

// Calls check(op_case, concrete) for each case of the op in both 16-bit types.
template <typename Check>
void ForEachHalfCase(const std::string& op, const Check& check) {
  for (const OpCase* op_case : CasesOf(op)) {
    for (const DType dtype : {DType::kBF16, DType::kF16}) {
      SCOPED_TRACE(fmt::format("{}, {}", op_case->label, DTypeName(dtype)));
      const OpCase half = InHalf(*op_case, dtype);
      const ConcreteCase concrete(half);
      const std::vector<HeapTensor> inputs = concrete.inputs();
      if (std::any_of(inputs.begin(), inputs.end(), IsHalf)) check(half, concrete);
    }
  }
}

TEST_P(OpHalfTest, KernelRoundsWhatItComputesInF32) {
  ForEachHalfCase(op().name, [](const OpCase& op_case, const ConcreteCase& concrete) {
    const std::vector<HeapTensor> outputs = concrete.Run(concrete.inputs());
    const std::vector<HeapTensor> expected =
        op_case.rounds_within ? SeparateResults(concrete) : RoundedF32Results(concrete, outputs);
    ASSERT_EQ(outputs.size(), expected.size());
    for (size_t i = 0; i < outputs.size(); ++i) {
      const DType dtype = outputs[i].type().dtype;
      const bool is_apart = op_case.sums_products && !op_case.rounds_within;
      if (op_case.rounds_terms || (is_apart && dtype == DType::kBF16)) {
        const double tolerance = (op_case.rounds_terms ? 2 : 1) * RoundingError(dtype);
        EXPECT_TRUE(IsClose(outputs[i].ToDoubles(), expected[i].ToDoubles(), tolerance))
            << "output " << i;
        continue;
      }
      EXPECT_TRUE(SameBits(outputs[i], expected[i])) << "output " << i;
    }
  });
}

TEST_P(OpHalfTest, KernelMatchesReference) {
  constexpr int kRoundingsWithin = 4;
  constexpr int kRoundingsOfTerms = 2;  // including that of the result
  ForEachHalfCase(op().name, [](const OpCase& op_case, const ConcreteCase& concrete) {
    const std::vector<HeapTensor> outputs = concrete.Run(concrete.inputs());
    const ReferenceOutputs expected = concrete.Reference();
    ASSERT_EQ(outputs.size(), expected.size());
    for (size_t i = 0; i < outputs.size(); ++i) {
      double tolerance = op_case.tolerance;
      if (IsHalf(outputs[i])) {
        tolerance +=
            RoundingError(outputs[i].type().dtype) * (op_case.rounds_within  ? kRoundingsWithin
                                                      : op_case.rounds_terms ? kRoundingsOfTerms
                                                                             : 1);
      }
      EXPECT_TRUE(IsClose(outputs[i].ToDoubles(), expected[i], tolerance)) << "output " << i;
    }
  });
}

TEST_P(OpHalfTest, InPlaceGivesTheSameBits) {
  if (op().aliases == nullptr) return;
  ForEachHalfCase(op().name, [](const OpCase&, const ConcreteCase& concrete) {
    ExpectSameBitsInPlace(concrete);
  });
}

}  // namespace
}  // namespace zg::testing
