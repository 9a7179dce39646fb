// Kernels have the same bits on one thread and on several, also in place: every op with a kernel,
// on all of its cases, in all dtypes.
#include <fmt/format.h>

#include <vector>

#include "framework/base/threads.h"
#include "framework/ir/op_registry.h"
#include "framework/kernels/cpu/cpu_kernels.h"
#include "framework/kernels/cpu/sharing.h"
#include "tests/ops/op_suite.h"
#include "tests/testing/interpreter.h"

namespace zg::testing {
namespace {

class SmallWorkIsShared {
 public:
  SmallWorkIsShared() { ShareSmallWork(true); }
  ~SmallWorkIsShared() { ShareSmallWork(false); }
};

// The results of a run on these threads; null: on one thread. With an alias rule, `over` the input.
std::vector<HeapTensor> Run(const ConcreteCase& concrete, Threads* threads,
                            const ir::AliasRule* over) {
  const KernelRegistry& kernels = CpuKernels(threads == nullptr ? 1 : threads->count());
  const std::vector<HeapTensor> inputs = concrete.inputs();
  std::vector<HeapTensor> outputs;
  for (const ir::Value* output : concrete.node().outputs) outputs.emplace_back(output->type);
  const ir::OpDef& op = *concrete.node().op;
  if (op.aliases != nullptr) {
    for (const ir::AliasRule& rule : op.aliases(concrete.call())) {
      const bool is_inside = rule.kind == ir::AliasRule::Kind::kOutputInsideInput;
      const bool is_over = over != nullptr && rule.kind == ir::AliasRule::Kind::kInPlace &&
                           rule.input == over->input && rule.output == over->output;
      if (!is_inside && !is_over) continue;
      outputs[rule.output] = inputs[rule.input].View(outputs[rule.output].type(),
                                                     is_inside ? rule.offset_elements : 0);
    }
  }
  const Status status =
      ExecuteInto(kernels, concrete.call(), inputs, SuiteStep(), outputs, 0, threads);
  EXPECT_TRUE(status.ok()) << status.ToString();
  return outputs;
}

void ExpectSame(const std::vector<HeapTensor>& got, const std::vector<HeapTensor>& expected) {
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_TRUE(SameBits(got[i], expected[i])) << "output " << i;
  }
}

void ExpectSameBits(const ConcreteCase& concrete, Threads* threads) {
  ExpectSame(Run(concrete, threads, nullptr), Run(concrete, nullptr, nullptr));
  const ir::OpDef& op = *concrete.node().op;
  if (op.aliases == nullptr) return;
  for (const ir::AliasRule& rule : op.aliases(concrete.call())) {
    if (rule.kind != ir::AliasRule::Kind::kInPlace) continue;
    const int64_t bytes = concrete.node().outputs[rule.output]->type.bytes();
    if (concrete.node().inputs[rule.input]->type.bytes() != bytes) continue;
    SCOPED_TRACE(fmt::format("output {} over input {}", rule.output, rule.input));
    ExpectSame(Run(concrete, threads, &rule), Run(concrete, nullptr, &rule));
  }
}

class OpThreadsTest : public OpSuite {};
INSTANTIATE_TEST_SUITE_P(Ops, OpThreadsTest, ::testing::ValuesIn(KernelOpNames()),
                         [](const auto& info) { return info.param; });

TEST_P(OpThreadsTest, GiveTheBitsOfOne) {
  const SmallWorkIsShared small_work_is_shared;
  std::vector<const OpCase*> cases = CasesOf(op().name);
  for (const OpCase* large : LargeCasesOf(op().name)) cases.push_back(large);
  for (const int count : {2, 3}) {
    Threads threads(count);
    for (const OpCase* op_case : cases) {
      for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) {
        SCOPED_TRACE(
            fmt::format("{}, {}, {} threads", op_case->label, DTypeName(dtype), threads.count()));
        ExpectSameBits(ConcreteCase(InHalf(*op_case, dtype)), &threads);
      }
    }
  }
}

}  // namespace
}  // namespace zg::testing
