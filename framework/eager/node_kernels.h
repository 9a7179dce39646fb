// NodeKernels: runs single nodes on a device. A kernel is made once for an op, its attributes and the
// types of its inputs; the kernels that ran last are kept.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "framework/base/status.h"
#include "framework/base/threads.h"
#include "framework/device/device.h"
#include "framework/eager/memory_pool.h"
#include "framework/ir/graph.h"
#include "framework/kernels/kernel.h"

namespace zg::eager {

class NodeKernels {
 public:
  // More than one step of a model has. Attributes and shapes may always change: a learning rate,
  // the lengths of texts.
  static constexpr int64_t kMostKernels = 4096;

  NodeKernels(const KernelRegistry* registry, Device* device, int64_t most_kernels = kMostKernels)
      : registry_(*registry),
        device_(*device),
        threads_(registry->options().threads),
        most_kernels_(most_kernels) {}

  // For the runs from now on; before the first one.
  Status SetContext(const StepContext& context);

  // Errors: the op has no kernel for these types; bad data. On a GPU it waits until the kernel is
  // done: an error is that of this node.
  Status Run(const ir::Node& node, const std::vector<const void*>& inputs,
             const std::vector<void*>& outputs, MemoryPool* pool);

  int64_t num_kernels() const { return static_cast<int64_t>(kernels_.size()); }
  int64_t num_made() const { return num_made_; }

 private:
  struct Made {
    std::string key;  // what it is made for
    std::unique_ptr<Kernel> kernel;
  };

  // What kernels read and write in the memory of a device that has a queue.
  struct OnDevice {
    StepContext context;
    DeviceFault fault;
  };

  StatusOr<Kernel*> KernelFor(const ir::Node& node);
  Status CheckFault(const Kernel& kernel);
  OnDevice* on_device() const { return reinterpret_cast<OnDevice*>(on_device_.get()); }

  const KernelRegistry& registry_;
  Device& device_;
  Threads threads_;
  StepContext context_;
  DeviceBytes on_device_;  // null: the host, whose kernels return errors themselves
  int64_t most_kernels_;
  int64_t num_made_ = 0;
  std::list<Made> kernels_;  // the one that ran last comes first
  // Key: op, attributes and types.
  std::unordered_map<std::string, std::list<Made>::iterator> by_key_;
};

}  // namespace zg::eager
