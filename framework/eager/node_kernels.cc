#include "framework/eager/node_kernels.h"

#include <utility>

namespace zg::eager {
namespace {

// "linear|f32[8,4]|f32[3,4]|name=value".
std::string KeyOf(const ir::Node& node) {
  std::string key = node.op->name;
  for (const ir::Value* input : node.inputs) {
    key += '|';
    key += DTypeName(input->type.dtype);
    for (const int64_t dim : input->type.shape.dims()) {
      key += ',';
      key += std::to_string(dim);
    }
  }
  for (const auto& [name, value] : node.attributes.items()) {
    key += '|';
    key += name;
    key += '=';
    key += ir::ToString(value);
  }
  return key;
}

}  // namespace

StatusOr<Kernel*> NodeKernels::KernelFor(const ir::Node& node) {
  std::string key = KeyOf(node);
  if (const auto found = by_key_.find(key); found != by_key_.end()) {
    kernels_.splice(kernels_.begin(), kernels_, found->second);
    return kernels_.front().kernel.get();
  }
  KernelSpec spec{node.Call(), {}};
  for (const ir::Value* output : node.outputs) spec.outputs.push_back(output->type);
  ZG_ASSIGN_OR_RETURN(std::unique_ptr<Kernel> kernel, registry_.Make(spec));
  ++num_made_;
  kernels_.push_front({key, std::move(kernel)});
  by_key_.emplace(std::move(key), kernels_.begin());
  if (num_kernels() > most_kernels_) {
    by_key_.erase(kernels_.back().key);
    kernels_.pop_back();
  }
  return kernels_.front().kernel.get();
}

Status NodeKernels::SetContext(const StepContext& context) {
  context_ = context;
  if (device_.is_host()) return Status::Ok();
  if (on_device_ == nullptr) {
    ZG_ASSIGN_OR_RETURN(on_device_, device_.Allocate(sizeof(OnDevice)));  // no fault: it is zeroed
  }
  return device_.Write(&on_device()->context, &context_, sizeof(context_));
}

Status NodeKernels::Run(const ir::Node& node, const std::vector<const void*>& inputs,
                        const std::vector<void*>& outputs, MemoryPool* pool) {
  ZG_ASSIGN_OR_RETURN(Kernel* const kernel, KernelFor(node));
  std::shared_ptr<std::byte> workspace;
  if (kernel->workspace_bytes() > 0) {
    ZG_ASSIGN_OR_RETURN(workspace, pool->Take(kernel->workspace_bytes()));
  }
  KernelArguments arguments{inputs.data(), outputs.data(), workspace.get(), &context_};
  if (device_.is_host()) {
    arguments.threads = &threads_;
    return kernel->Run(arguments);
  }
  arguments.stream = device_.stream();
  arguments.device_step = &on_device()->context;
  arguments.fault = &on_device()->fault;
  ZG_RETURN_IF_ERROR(kernel->Run(arguments));
  return CheckFault(*kernel);
}

Status NodeKernels::CheckFault(const Kernel& kernel) {
  DeviceFault fault;
  ZG_RETURN_IF_ERROR(device_.CopyOut(&fault, &on_device()->fault, sizeof(fault)));
  ZG_RETURN_IF_ERROR(device_.Synchronize());
  if (fault.happened == 0) return Status::Ok();
  ZG_RETURN_IF_ERROR(device_.Zero(&on_device()->fault, sizeof(fault)));
  return InvalidArgument("{}", kernel.FaultText(fault));
}

}  // namespace zg::eager
