#include "framework/device/cuda_support.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <string_view>

#include "framework/base/format.h"

namespace zg {
namespace {

constexpr const char* kHint = "; run on a machine with an NVIDIA GPU, or use `device=cpu`";
constexpr char kSharedGpu[] = "ZG_TEST_SHARED_GPU";

std::string VersionText(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

}  // namespace

Status CheckCudaProbe(const CudaProbe& probe) {
  if (probe.driver_version == 0) {
    return FailedPrecondition("`device=cuda`: this machine has no NVIDIA driver (libcuda.so.1){}",
                              kHint);
  }
  // Within a major version an older driver runs programs of a newer toolkit.
  if (probe.driver_version / 1000 < probe.runtime_version / 1000) {
    return FailedPrecondition(
        "`device=cuda`: the driver supports CUDA {}, but this program was built with {}; install "
        "a newer driver, build with a toolkit {}.x (CUDA_PATH), or use `device=cpu`",
        VersionText(probe.driver_version), VersionText(probe.runtime_version),
        probe.driver_version / 1000);
  }
  if (!probe.error.empty() || probe.num_devices == 0) {
    const std::string why = probe.error.empty() ? "" : fmt::format(" ({})", probe.error);
    if (!probe.visible_devices.empty()) {
      return FailedPrecondition(
          "`device=cuda`: the driver shows no GPU{}; CUDA_VISIBLE_DEVICES is '{}'{}", why,
          probe.visible_devices, kHint);
    }
    return FailedPrecondition("`device=cuda`: the driver shows no GPU{}{}", why, kHint);
  }
  return Status::Ok();
}

Status CheckCudaIndex(int index, int num_devices) {
  if (index >= 0 && index < num_devices) return Status::Ok();
  return InvalidArgument("cuda:{}: there is no such GPU; expected 0 to {}", index, num_devices - 1);
}

Status CheckCudaCapability(const std::string& device, int major, int minor) {
  if (major >= 8) return Status::Ok();
  return FailedPrecondition(
      "{}: its compute capability is {}.{}, but the kernels need 8.0 or more (Ampere, 2020)",
      device, major, minor);
}

std::string FirstStartNotice(const std::string& device, int major, int minor) {
  constexpr int kLastMajorWithCode = 9;  // of the default --define cuda_archs
  if (major <= kLastMajorWithCode) return "";
  return fmt::format(
      "{}: unless this build has code for compute capability {}.{} (--define cuda_archs={}{}), the "
      "driver compiles the kernels at the first start, which can take half a minute and more; it "
      "keeps them in CUDA_CACHE_PATH, by default ~/.nv/ComputeCache",
      device, major, minor, major, minor);
}

Status CudaOutOfMemory(const std::string& device, int64_t bytes, int64_t free_bytes,
                       int64_t total_bytes) {
  return FailedPrecondition(
      "{}: {} are needed, but {} of {} are free: {} bytes are missing; use a higher ZeRO stage, "
      "smaller micro-batches or more GPUs",
      device, FormatExactBytes(bytes), FormatExactBytes(free_bytes), FormatExactBytes(total_bytes),
      std::max<int64_t>(0, bytes - free_bytes));
}

Status CudaWorkFailed(const std::string& device, const std::string& error) {
  return FailedPrecondition(
      "{}: queued work failed: {}\n  hint: with CUDA_LAUNCH_BLOCKING=1, and without `record`, "
      "the error names the node",
      device, error);
}

Status CheckOneRankPerGpu(const std::vector<std::string>& gpu_by_rank) {
  std::map<std::string, size_t> rank_of_gpu;
  for (size_t rank = 0; rank < gpu_by_rank.size(); ++rank) {
    const auto [taken, is_free] = rank_of_gpu.emplace(gpu_by_rank[rank], rank);
    if (is_free) continue;
    return InvalidArgument(
        "`gpu_collectives=nccl`: ranks {} and {} share the GPU {}, which NCCL does not allow; "
        "start one rank per GPU, or use `gpu_collectives=peer` or `gpu_collectives=host`",
        taken->second, rank, gpu_by_rank[rank]);
  }
  return Status::Ok();
}

StatusOr<bool> IsGpuSharedForTest() {
  const char* const text = std::getenv(kSharedGpu);
  if (text == nullptr) return false;
  if (std::string_view(text) != "1") {
    return InvalidArgument("environment variable {} is '{}'; expected 1", kSharedGpu, text);
  }
  if (std::getenv("TEST_TMPDIR") == nullptr) {
    return InvalidArgument(
        "environment variable {} is for tests, which have TEST_TMPDIR; start one rank per GPU, or "
        "use `gpu_collectives=host`",
        kSharedGpu);
  }
  return true;
}

int GpuOfRank(int local_rank, int num_devices) { return local_rank % num_devices; }

}  // namespace zg
