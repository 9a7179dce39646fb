// NodeKernels: runs single nodes. A kernel is made once for an op, its attributes and the types of
// its inputs.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "framework/base/status.h"
#include "framework/base/threads.h"
#include "framework/eager/memory_pool.h"
#include "framework/ir/graph.h"
#include "framework/kernels/kernel.h"

namespace zg::eager {

class NodeKernels {
 public:
  explicit NodeKernels(const KernelRegistry* registry)
      : registry_(*registry), threads_(registry->options().threads) {}

  // Errors: the op has no kernel for these types; bad data.
  Status Run(const ir::Node& node, const std::vector<const void*>& inputs,
             const std::vector<void*>& outputs, const StepContext& context, MemoryPool* pool);

 private:
  StatusOr<Kernel*> KernelFor(const ir::Node& node);

  const KernelRegistry& registry_;
  Threads threads_;
  // Key: op, attributes and types.
  std::unordered_map<std::string, std::unique_ptr<Kernel>> kernels_;
};

}  // namespace zg::eager
