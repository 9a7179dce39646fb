#include "framework/device/cuda_support.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace zg {
namespace {

TEST(CudaSupport, WhyThereIsNoGpu) {
  EXPECT_TRUE(CheckCudaProbe({13000, 13000, 1, ""}).ok());
  EXPECT_TRUE(CheckCudaProbe({13010, 13000, 8, ""}).ok());  // the same major version
  EXPECT_EQ(CheckCudaProbe({13000, 0, 0, "CUDA driver version is insufficient"}).message(),
            "`device=cuda`: this machine has no NVIDIA driver (libcuda.so.1); run on a machine "
            "with an NVIDIA GPU, or use `device=cpu`");
  EXPECT_EQ(CheckCudaProbe({13000, 12040, 0, "CUDA driver version is insufficient"}).message(),
            "`device=cuda`: the driver supports CUDA 12.4, but this program was built with 13.0; "
            "install a newer driver, build with a toolkit 12.x (CUDA_PATH), or use `device=cpu`");
  EXPECT_EQ(CheckCudaProbe({13000, 13000, 0, "no CUDA-capable device is detected"}).message(),
            "`device=cuda`: the driver shows no GPU (no CUDA-capable device is detected); run on "
            "a machine with an NVIDIA GPU, or use `device=cpu`");
  EXPECT_EQ(CheckCudaProbe({13000, 13000, 0, "", "7"}).message(),
            "`device=cuda`: the driver shows no GPU; CUDA_VISIBLE_DEVICES is '7'; run on a machine "
            "with an NVIDIA GPU, or use `device=cpu`");
}

TEST(CudaSupport, WhichGpu) {
  EXPECT_TRUE(CheckCudaIndex(1, 2).ok());
  EXPECT_EQ(CheckCudaIndex(2, 2).message(), "cuda:2: there is no such GPU; expected 0 to 1");
  EXPECT_EQ(CheckCudaIndex(-1, 2).message(), "cuda:-1: there is no such GPU; expected 0 to 1");
  EXPECT_EQ(GpuOfRank(3, 4), 3);
  EXPECT_EQ(GpuOfRank(5, 4), 1);
}

TEST(CudaSupport, TooOldAGpu) {
  EXPECT_TRUE(CheckCudaCapability("cuda:0 (A100)", 8, 0).ok());
  EXPECT_EQ(CheckCudaCapability("cuda:0 (V100)", 7, 0).message(),
            "cuda:0 (V100): its compute capability is 7.0, but the kernels need 8.0 or more "
            "(Ampere, 2020)");
}

TEST(CudaSupport, SaysThatTheFirstStartOfANewerGpuTakesLong) {
  EXPECT_EQ(FirstStartNotice("cuda:0 (A10)", 8, 6), "");
  EXPECT_EQ(FirstStartNotice("cuda:0 (H200)", 9, 0), "");
  EXPECT_EQ(FirstStartNotice("cuda:0 (B200)", 10, 0),
            "cuda:0 (B200): unless this build has code for compute capability 10.0 (--define "
            "cuda_archs=100), the driver compiles the kernels at the first start, which can take "
            "half a minute and more; it keeps them in CUDA_CACHE_PATH, by default "
            "~/.nv/ComputeCache");
}

TEST(CudaSupport, TooLittleMemorySaysHowMuchIsMissing) {
  const int64_t gib = int64_t{1} << 30;
  EXPECT_EQ(CudaOutOfMemory("cuda:0 (T)", 5 * gib, 3 * gib, 4 * gib).message(),
            "cuda:0 (T): 5.4 GB (5368709120 bytes) are needed, but 3.2 GB (3221225472 bytes) "
            "of 4.3 GB (4294967296 bytes) are free: 2147483648 bytes are missing; use a higher "
            "ZeRO stage, smaller micro-batches or more GPUs");
}

TEST(CudaSupport, WorkThatFailedSaysHowToFindTheNode) {
  EXPECT_EQ(
      CudaWorkFailed("cuda:0 (T)", "an illegal memory access was encountered").message(),
      "cuda:0 (T): queued work failed: an illegal memory access was encountered\n  hint: with "
      "CUDA_LAUNCH_BLOCKING=1, and without `record`, the error names the node");
}

TEST(CudaSupport, NcclNeedsAGpuForEachRank) {
  EXPECT_TRUE(CheckOneRankPerGpu({"a", "b", "c"}).ok());
  EXPECT_EQ(CheckOneRankPerGpu({"a", "b", "a", "b"}).message(),
            "`gpu_collectives=nccl`: ranks 0 and 2 share the GPU a, which NCCL does not allow; "
            "start one rank per GPU, or use `gpu_collectives=peer` or `gpu_collectives=host`");
}

TEST(CudaSupport, RanksShareAGpuOverNcclInTestsOnly) {
  const char* const folder = std::getenv("TEST_TMPDIR");
  const std::string saved = folder == nullptr ? "" : folder;
  setenv("TEST_TMPDIR", "/tmp", 1);
  unsetenv("ZG_TEST_SHARED_GPU");
  EXPECT_FALSE(IsGpuSharedForTest().value());
  setenv("ZG_TEST_SHARED_GPU", "1", 1);
  EXPECT_TRUE(IsGpuSharedForTest().value());
  setenv("ZG_TEST_SHARED_GPU", "yes", 1);
  EXPECT_EQ(IsGpuSharedForTest().status().message(),
            "environment variable ZG_TEST_SHARED_GPU is 'yes'; expected 1");
  setenv("ZG_TEST_SHARED_GPU", "1", 1);
  unsetenv("TEST_TMPDIR");
  EXPECT_EQ(IsGpuSharedForTest().status().message(),
            "environment variable ZG_TEST_SHARED_GPU is for tests, which have TEST_TMPDIR; start "
            "one rank per GPU, or use `gpu_collectives=host`");
  unsetenv("ZG_TEST_SHARED_GPU");
  if (folder != nullptr) setenv("TEST_TMPDIR", saved.c_str(), 1);
}

}  // namespace
}  // namespace zg
