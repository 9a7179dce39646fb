#include "framework/kernels/device_kernels.h"

#include <fmt/format.h>

#include "framework/kernels/cpu/cpu_kernels.h"
#include "framework/kernels/cuda/cuda_kernels.h"

namespace zg {
namespace {

constexpr int kMaxThreads = 1024;  // as for a job

}  // namespace

StatusOr<const KernelRegistry*> DeviceKernels(const Device& device, const KernelOptions& options) {
  if (options.threads < 1 || options.threads > kMaxThreads) {
    return InvalidArgument("threads: got {}, expected 1 to {}", options.threads, kMaxThreads);
  }
  if (device.is_host()) {
    if (!options.tf32) return &CpuKernels(options.threads);
    return InvalidArgument(
        "tf32 is for the tensor cores of a GPU, but the ranks compute on the CPU");
  }
  if (options.threads == 1) return &CudaKernels(options.tf32);
  return InvalidArgument(
      "threads are for ranks that compute on the CPU: got {}, on a GPU expected 1",
      options.threads);
}

std::string ArithmeticOf(const Device& device, DType dtype) {
  if (device.is_host()) {
    const std::string_view own_order = dtype == DType::kBF16 ? OwnOrderOfBf16Products() : "";
    return own_order.empty() ? "x86-64" : fmt::format("x86-64, bf16 products by {}", own_order);
  }
  // "cuda:0 (NVIDIA H200)": the number is specific to this host.
  const std::string name = device.name();
  const size_t begin = name.find('(');
  const size_t end = name.rfind(')');
  const bool has_model = begin != std::string::npos && end != std::string::npos && begin < end;
  return fmt::format("{}, {}", has_model ? name.substr(begin + 1, end - begin - 1) : name,
                     CudaLibraryVersion());
}

}  // namespace zg
