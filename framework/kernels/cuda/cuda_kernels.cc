#include "framework/kernels/cuda/cuda_kernels.h"

namespace zg {
namespace cuda {

#define ZG_OP_FAMILY(Family) void Register##Family##Kernels(KernelRegistry& registry);
#include "framework/ops/families.inc"

std::string BlasVersion();  // matmul.h

namespace {

const KernelRegistry* MakeRegistry(const KernelOptions& options) {
  auto* registry = new KernelRegistry(options);
#define ZG_OP_FAMILY(Family) Register##Family##Kernels(*registry);
#include "framework/ops/families.inc"
  return registry;
}

}  // namespace
}  // namespace cuda

const KernelRegistry& CudaKernels(bool tf32) {
  static const KernelRegistry* const exact = cuda::MakeRegistry({});
  static const KernelRegistry* const rounding = cuda::MakeRegistry({/*tf32=*/true});
  return tf32 ? *rounding : *exact;
}

std::string CudaLibraryVersion() { return cuda::BlasVersion(); }

}  // namespace zg
