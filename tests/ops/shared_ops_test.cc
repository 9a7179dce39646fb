// The ops of framework/ops share their work among threads, except those that are named here.

#include <fmt/format.h>

#include <set>
#include <string>

#include "framework/base/threads.h"
#include "framework/ir/op_registry.h"
#include "framework/kernels/cpu/cpu_kernels.h"
#include "framework/kernels/cpu/sharing.h"
#include "tests/ops/op_suite.h"
#include "tests/testing/interpreter.h"

namespace zg::testing {
namespace {

// Ops whose work is a few numbers, or moving data that the memory plan has put in place already,
// and ops whose order of sums is that of one thread.
const std::set<std::string>& OpsOfOneThread() {
  static const auto& ops = *new std::set<std::string>{
      "add_square_sums",
      "bucket_pack",
      "cached_rows",
      "constant",
      "cross_entropy_of_parts",
      "dropout_attention_bias_grad",  // shares blocks of queries; its cases have only one
      "factor_sums",
      "factored_step_sums",
      "factored_update",
      "guarded_update_control",
      "iota",
      "keep_rows",
      "left_rows",
      "literal",
      "loss_seed",
      "move_texts",
      "position_ids",
      "read_rows",
      "scaled_update_control",
      "tensor_square_sums",  // shares blocks of a tensor's elements; its cases have only one
      "top_k",
      "update_control",
      "write_rows",
  };
  return ops;
}

class SharedOpsTest : public OpSuite {};
INSTANTIATE_TEST_SUITE_P(Ops, SharedOpsTest, ::testing::ValuesIn(KernelOpNames()),
                         [](const auto& info) { return info.param; });

TEST_P(SharedOpsTest, TakeSeveralThreads) {
  ShareSmallWork(true);
  Threads threads(2);
  std::vector<const OpCase*> cases = CasesOf(op().name);
  for (const OpCase* large : LargeCasesOf(op().name)) cases.push_back(large);
  for (const OpCase* op_case : cases) {
    const ConcreteCase concrete(*op_case);
    std::vector<HeapTensor> outputs;
    for (const ir::Value* output : concrete.node().outputs) outputs.emplace_back(output->type);
    const Status status = ExecuteInto(CpuKernels(2), concrete.call(), concrete.inputs(),
                                      SuiteStep(), outputs, 0, &threads);
    EXPECT_TRUE(status.ok()) << status.ToString();
  }
  ShareSmallWork(false);
  EXPECT_EQ(threads.num_shared_runs() == 0, OpsOfOneThread().count(op().name) == 1)
      << threads.num_shared_runs() << " runs on several threads";
}

}  // namespace
}  // namespace zg::testing
