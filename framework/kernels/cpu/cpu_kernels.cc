#include "framework/kernels/cpu/cpu_kernels.h"

#include <utility>

namespace zg {

#define ZG_OP_FAMILY(Family) void Register##Family##Kernels(KernelRegistry& registry);
#define ZG_OP_FAMILY_WITHOUT_CUDA(Family) ZG_OP_FAMILY(Family)
#include "framework/ops/families.inc"

namespace {

KernelRegistry& MutableCpuKernels() {
  static KernelRegistry* const kernels = [] {
    auto* registry = new KernelRegistry;
#define ZG_OP_FAMILY(Family) Register##Family##Kernels(*registry);
#define ZG_OP_FAMILY_WITHOUT_CUDA(Family) ZG_OP_FAMILY(Family)
#include "framework/ops/families.inc"
    return registry;
  }();
  return *kernels;
}

}  // namespace

const KernelRegistry& CpuKernels() { return MutableCpuKernels(); }

void RegisterCpuKernel(std::string op, KernelFactory factory) {
  MutableCpuKernels().Register(std::move(op), factory);
}

}  // namespace zg
