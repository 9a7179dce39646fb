// The errors about a job's GPUs. Nothing here needs CUDA, so every message is tested on machines
// without it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/base/status.h"

namespace zg {

// The answers of the CUDA runtime. Versions are in its form: 13000 is 13.0.
struct CudaProbe {
  int runtime_version = 0;
  int driver_version = 0;  // the newest that the driver supports; 0: there is no driver
  int num_devices = 0;
  std::string error;              // from counting the devices; empty if that succeeded
  std::string visible_devices{};  // CUDA_VISIBLE_DEVICES
};

// Error: there is no GPU, and why.
Status CheckCudaProbe(const CudaProbe& probe);

// GPU `index` must be one of `num_devices`.
Status CheckCudaIndex(int index, int num_devices);

// The kernels are made for compute capability 8.0 and up.
Status CheckCudaCapability(const std::string& device, int major, int minor);

// A notice for the user of a GPU whose driver may have to compile the kernels; empty: no notice.
std::string FirstStartNotice(const std::string& device, int major, int minor);

// The error if `bytes` do not fit into the free part of `total_bytes`.
Status CudaOutOfMemory(const std::string& device, int64_t bytes, int64_t free_bytes,
                       int64_t total_bytes);

// The error about queued work that has failed; `error` is CUDA's text.
Status CudaWorkFailed(const std::string& device, const std::string& error);

// NCCL needs a GPU for each rank; `gpu_by_rank` names the ranks' GPUs.
Status CheckOneRankPerGpu(const std::vector<std::string>& gpu_by_rank);

// Whether ZG_TEST_SHARED_GPU=1 asks to skip that check, so that a test on one GPU can show that
// NCCL works: ranks then communicate through sockets, as if each had a host of its own. Much slower
// than `gpu_collectives=host`. Errors: another value; no TEST_TMPDIR, which tests have.
StatusOr<bool> IsGpuSharedForTest();

// The ranks of a host take its GPUs in turn.
int GpuOfRank(int local_rank, int num_devices);

}  // namespace zg
