#include "framework/kernels/kernel.h"

#include <fmt/format.h>

#include <algorithm>

#include "framework/base/check.h"

namespace zg {

std::string Kernel::FaultText(const DeviceFault& fault) const {
  return fmt::format("bad data in node {}: got {}, the limit is {}", fault.node, fault.got,
                     fault.limit);
}

void KernelRegistry::Register(std::string op, KernelFactory factory) {
  const std::string name = op;
  ZG_CHECK(factories_.emplace(std::move(op), factory).second, "kernel for {} is registered twice",
           name);
}

KernelRegistry KernelRegistry::WithGemmChoices(GemmChoices* choices) const {
  KernelRegistry registry = *this;
  registry.options_.gemm_choices = choices;
  return registry;
}

namespace {

// Computes results without elements.
class NoWork : public Kernel {
 public:
  Status Run(const KernelArguments&) override { return Status::Ok(); }
};

bool HasNoWork(const KernelSpec& spec) {
  const auto is_empty = [](const TensorType& type) { return type.shape.num_elements() == 0; };
  return !spec.outputs.empty() && std::all_of(spec.outputs.begin(), spec.outputs.end(), is_empty);
}

}  // namespace

StatusOr<std::unique_ptr<Kernel>> KernelRegistry::Make(const KernelSpec& spec) const {
  const auto found = factories_.find(spec.call.op->name);
  if (found == factories_.end()) {
    return InvalidArgument("{}: no kernel on this device", spec.call.op->name);
  }
  if (HasNoWork(spec)) return std::unique_ptr<Kernel>(std::make_unique<NoWork>());
  const bool has_options =
      spec.threads == options_.threads && spec.gemm_choices == options_.gemm_choices;
  if (has_options) return found->second(spec);
  KernelSpec of_options = spec;
  of_options.threads = options_.threads;
  of_options.gemm_choices = options_.gemm_choices;
  return found->second(of_options);
}

}  // namespace zg
