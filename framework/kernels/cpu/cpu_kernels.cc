#include "framework/kernels/cpu/cpu_kernels.h"

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/instruction_set.h"
#include "framework/kernels/cpu/gemm_amx.h"
#include "framework/kernels/cpu/gemm_pairs.h"

namespace zg {

#define ZG_OP_FAMILY(Family) void Register##Family##Kernels(KernelRegistry& registry);
#define ZG_OP_FAMILY_WITHOUT_CUDA(Family) ZG_OP_FAMILY(Family)
#include "framework/ops/families.inc"

namespace {

// The registries that were requested, by number of threads.
class CpuRegistries {
 public:
  static CpuRegistries& Global() {
    static auto* const registries = new CpuRegistries;
    return *registries;
  }

  const KernelRegistry& Of(int threads) {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::unique_ptr<KernelRegistry>& registry = by_threads_[threads];
    if (registry == nullptr) {
      KernelOptions options;
      options.threads = threads;
      registry = std::make_unique<KernelRegistry>(options);
#define ZG_OP_FAMILY(Family) Register##Family##Kernels(*registry);
#define ZG_OP_FAMILY_WITHOUT_CUDA(Family) ZG_OP_FAMILY(Family)
#include "framework/ops/families.inc"
      for (const auto& [op, factory] : others_) registry->Register(op, factory);
    }
    return *registry;
  }

  void Register(const std::string& op, KernelFactory factory) {
    Of(1);  // existing ops are found here
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const auto& [threads, registry] : by_threads_) registry->Register(op, factory);
    others_.emplace_back(op, factory);
  }

 private:
  std::mutex mutex_;
  std::map<int, std::unique_ptr<KernelRegistry>> by_threads_;
  std::vector<std::pair<std::string, KernelFactory>> others_;
};

}  // namespace

const KernelRegistry& CpuKernels(int threads) { return CpuRegistries::Global().Of(threads); }

void RegisterCpuKernel(std::string op, KernelFactory factory) {
  CpuRegistries::Global().Register(op, factory);
}

std::string_view OwnOrderOfBf16Products() {
  if (HasAmxProducts()) return InstructionSetName(InstructionSet::kAmx);
  if (PairProductsAreFast()) return InstructionSetName(InstructionSet::kAvx512Bf16);
  return "";
}

}  // namespace zg
