#include "framework/kernels/cpu/cpu_kernels.h"

namespace zg {

#define ZG_OP_FAMILY(Family) void Register##Family##Kernels(KernelRegistry& registry);
#define ZG_OP_FAMILY_WITHOUT_CUDA(Family) ZG_OP_FAMILY(Family)
#include "framework/ops/families.inc"

const KernelRegistry& CpuKernels() {
  static const KernelRegistry* const kernels = [] {
    auto* registry = new KernelRegistry;
#define ZG_OP_FAMILY(Family) Register##Family##Kernels(*registry);
#define ZG_OP_FAMILY_WITHOUT_CUDA(Family) ZG_OP_FAMILY(Family)
#include "framework/ops/families.inc"
    return registry;
  }();
  return *kernels;
}

}  // namespace zg
