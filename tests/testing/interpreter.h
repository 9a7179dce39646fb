// Runs nodes one after the other with the kernels of one device: no plan, no streams, every value
// on the heap. Tests compare the real executor with it, and use it to run a single kernel.
#pragma once

#include <unordered_map>
#include <vector>

#include "framework/base/status.h"
#include "framework/ir/graph.h"
#include "framework/kernels/kernel.h"
#include "tests/testing/heap_tensor.h"

namespace zg::testing {

// Runs the kernel of `call` on memory of the caller's choice. `part` and `threads` are those of
// KernelArguments; `threads` are as many as `kernels` asks for, or null.
Status ExecuteInto(const KernelRegistry& kernels, const ir::OpCall& call,
                   const std::vector<HeapTensor>& inputs, const StepContext& step,
                   const std::vector<HeapTensor>& outputs, int64_t part = 0,
                   Threads* threads = nullptr);

// As above, into new tensors. Outputs that must be inside an input (AliasRule::kOutputInsideInput)
// are there and overwrite it. Views, which have no kernel, are only such outputs.
StatusOr<std::vector<HeapTensor>> Execute(const KernelRegistry& kernels, const ir::OpCall& call,
                                          const std::vector<HeapTensor>& inputs,
                                          const StepContext& step, int64_t part = 0);

class Interpreter {
 public:
  Interpreter(const KernelRegistry& kernels, StepContext step) : kernels_(kernels), step_(step) {}

  // Sets a value that no node computes, such as a variable.
  void Bind(const ir::Value* value, HeapTensor tensor) { values_[value] = std::move(tensor); }
  // Every input must be bound or computed before. Nodes have their logical types: one rank.
  Status Run(const std::vector<ir::Node*>& nodes);
  const HeapTensor& Get(const ir::Value* value) const;

 private:
  const KernelRegistry& kernels_;
  const StepContext step_;
  std::unordered_map<const ir::Value*, HeapTensor> values_;
};

}  // namespace zg::testing
