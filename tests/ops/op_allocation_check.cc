// Kernels allocate nothing while they run: every op with a kernel, on all of its cases.
#include <fmt/format.h>

#include "framework/ir/op_registry.h"
#include "tests/ops/op_suite.h"
#include "tests/testing/allocation_counter.h"

namespace zg::testing {
namespace {

TEST(AllocationCounter, Counts) {
  const AllocationCounter counter;
  auto* volatile value = new int(1);
  delete value;
  EXPECT_GE(counter.count(), 1);
}

void ExpectNoAllocations(const OpCase& op_case) {
  const ConcreteCase concrete(op_case);
  KernelSpec spec{concrete.call(), {}};
  std::vector<HeapTensor> inputs = concrete.inputs();
  std::vector<HeapTensor> outputs;
  std::vector<const void*> input_data;
  std::vector<void*> output_data;
  for (const HeapTensor& input : inputs) input_data.push_back(input.data());
  for (const ir::Value* output : concrete.node().outputs) {
    spec.outputs.push_back(output->type);
    outputs.emplace_back(output->type);
    output_data.push_back(outputs.back().data());
  }
  StatusOr<std::unique_ptr<Kernel>> kernel = Kernels().Make(spec);
  ASSERT_TRUE(kernel.ok()) << kernel.status().ToString();
  HeapTensor workspace({DType::kU8, {(*kernel)->workspace_bytes()}});
  const StepContext step = SuiteStep();
  const KernelArguments arguments = {input_data.data(), output_data.data(), workspace.data(),
                                     &step};
  const AllocationCounter counter;
  const Status status = (*kernel)->Run(arguments);
  EXPECT_EQ(counter.count(), 0);
  EXPECT_TRUE(status.ok()) << status.ToString();
}

class OpAllocationTest : public OpSuite {};
INSTANTIATE_TEST_SUITE_P(Ops, OpAllocationTest, ::testing::ValuesIn(KernelOpNames()),
                         [](const auto& info) { return info.param; });

TEST_P(OpAllocationTest, KernelsAllocateNothing) {
  std::vector<const OpCase*> cases = CasesOf(op().name);
  for (const OpCase* large : LargeCasesOf(op().name)) cases.push_back(large);
  EXPECT_FALSE(cases.empty()) << "add cases to the family's file in tests/ops";
  for (const OpCase* op_case : cases) {
    for (const DType dtype : {DType::kF32, DType::kBF16}) {
      SCOPED_TRACE(fmt::format("{}, {}", op_case->label, DTypeName(dtype)));
      ExpectNoAllocations(InHalf(*op_case, dtype));
    }
  }
}

}  // namespace
}  // namespace zg::testing
