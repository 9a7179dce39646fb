#include "framework/comm/available_memory.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace zg {
namespace {

// With /proc and /sys of its own.
class AvailableMemoryTest : public testing::Test {
 protected:
  AvailableMemoryTest() : root_(testing::TempDir() + "/available_memory_test") {
    std::filesystem::remove_all(root_);
    Write("/proc/meminfo", "MemTotal:       8000000 kB\nMemAvailable:   4000000 kB\n");
  }
  void Write(const std::string& path, const std::string& text) {
    const std::filesystem::path full = root_ + path;
    std::filesystem::create_directories(full.parent_path());
    std::ofstream(full) << text;
  }
  AvailableMemory Read() {
    const auto available = ReadAvailableMemory(root_);
    EXPECT_TRUE(available.ok()) << available.status().ToString();
    return *available;
  }
  const std::string root_;
};

TEST_F(AvailableMemoryTest, WithoutCgroupsIsTheSystems) {
  EXPECT_EQ(Read().bytes, int64_t{4000000} * 1024);
  EXPECT_EQ(Read().limited_by, "MemAvailable in /proc/meminfo");
}

TEST_F(AvailableMemoryTest, NoMeminfoIsAnError) {
  std::filesystem::remove_all(root_);
  EXPECT_EQ(ReadAvailableMemory(root_).status().code(), StatusCode::kFailedPrecondition);
}

TEST_F(AvailableMemoryTest, VersionTwoCountsEveryLevelAndGivesBackPageCache) {
  Write("/proc/self/cgroup", "0::/user/job\n");
  Write("/sys/fs/cgroup/user/job/memory.max", "max\n");
  Write("/sys/fs/cgroup/user/job/memory.current", "5000\n");
  Write("/sys/fs/cgroup/user/memory.max", "1000000\n");
  Write("/sys/fs/cgroup/user/memory.current", "300000\n");
  Write("/sys/fs/cgroup/user/memory.stat", "anon 1\ninactive_file 100000\n");
  EXPECT_EQ(Read().bytes, 1000000 - (300000 - 100000));
  EXPECT_EQ(Read().limited_by, "/sys/fs/cgroup/user/memory.max");
}

TEST_F(AvailableMemoryTest, InAContainerTheGroupIsTheMount) {
  Write("/proc/self/cgroup", "0::/\n");
  Write("/sys/fs/cgroup/memory.max", "2000000");
  Write("/sys/fs/cgroup/memory.current", "500000");
  EXPECT_EQ(Read().bytes, 1500000);
}

TEST_F(AvailableMemoryTest, VersionOne) {
  Write("/proc/self/cgroup", "5:cpu,cpuacct:/\n4:memory:/docker/1234\n");
  Write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  Write("/sys/fs/cgroup/memory/memory.usage_in_bytes", "1000\n");
  EXPECT_EQ(Read().bytes, int64_t{4000000} * 1024);
  Write("/sys/fs/cgroup/memory/docker/1234/memory.limit_in_bytes", "70000\n");
  Write("/sys/fs/cgroup/memory/docker/1234/memory.usage_in_bytes", "80000\n");
  EXPECT_EQ(Read().bytes, 0);
}

TEST(CheckMemoryForTest, SaysWhatIsRequiredAndWhatIsAvailable) {
  const AvailableMemory available{int64_t{10} << 30, "MemAvailable in /proc/meminfo"};
  EXPECT_TRUE(CheckMemoryFor(int64_t{5} << 30, 2, available).ok());
  EXPECT_EQ(CheckMemoryFor(int64_t{6} << 30, 2, available).message(),
            "2 ranks on this host need 12.9 GB (12884901888 bytes) for their arenas, but 10.7 GB "
            "(10737418240 bytes) are available (limited by MemAvailable in /proc/meminfo); use a "
            "higher ZeRO stage, smaller micro-batches or fewer ranks per host");
}

TEST(CheckMemoryForTest, RejectsANegativeSize) {
  EXPECT_EQ(CheckMemoryFor(-1, 2, {1000, "a test"}).message(), "an arena of -1 bytes");
}

TEST(CheckMemoryForTest, DoesNotOverflow) {
  EXPECT_FALSE(CheckMemoryFor(int64_t{1} << 62, 1000, {int64_t{1} << 40, "a test"}).ok());
}

}  // namespace
}  // namespace zg
