#include "framework/eager/node_kernels.h"

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
  std::unique_ptr<Kernel>& kernel = kernels_[KeyOf(node)];
  if (kernel == nullptr) {
    KernelSpec spec{node.Call(), {}};
    for (const ir::Value* output : node.outputs) spec.outputs.push_back(output->type);
    ZG_ASSIGN_OR_RETURN(kernel, registry_.Make(spec));
  }
  return kernel.get();
}

Status NodeKernels::Run(const ir::Node& node, const std::vector<const void*>& inputs,
                        const std::vector<void*>& outputs, const StepContext& context,
                        MemoryPool* pool) {
  ZG_ASSIGN_OR_RETURN(Kernel* const kernel, KernelFor(node));
  std::shared_ptr<std::byte> workspace;
  if (kernel->workspace_bytes() > 0) workspace = pool->Take(kernel->workspace_bytes());
  KernelArguments arguments{inputs.data(), outputs.data(), workspace.get(), &context};
  arguments.threads = &threads_;
  return kernel->Run(arguments);
}

}  // namespace zg::eager
