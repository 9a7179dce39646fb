#include "framework/job/process_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>

namespace zg {
namespace {

using ::testing::HasSubstr;

constexpr char kStatus[] =
    "Name:\tVmRSS:\nVmPeak:\t   9000 kB\nVmHWM:\t    2048 kB\nVmRSS:\t    1024 kB\n"
    "RssAnon:\t     512 kB\nRssShmem:\t      64 kB\nThreads:\t1\n";

std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  return text.replace(text.find(from), from.size(), to);
}

TEST(ProcessMemory, ParsesTheStatusFile) {
  const ProcessMemory memory = ParseProcessStatus(kStatus).value();
  EXPECT_EQ(memory.resident_bytes, 1024 * 1024);
  EXPECT_EQ(memory.peak_resident_bytes, 2048 * 1024);
  EXPECT_EQ(memory.shared_resident_bytes, 64 * 1024);
}

TEST(ProcessMemory, RejectsWhatIsNotAsDocumented) {
  for (const char* bad : {"1024", "1024 MB", "-1 kB", "1024 kB ", "x kB", "", "1 024 kB",
                          "99999999999999999999 kB", "9223372036854775807 kB"}) {
    const auto memory = ParseProcessStatus(Replaced(kStatus, "1024 kB", bad));
    ASSERT_FALSE(memory.ok()) << bad;
    EXPECT_THAT(memory.status().message(), HasSubstr("expected 'VmRSS: NUMBER kB'"));
  }
  EXPECT_THAT(ParseProcessStatus(Replaced(kStatus, "VmHWM", "VmHWN")).status().message(),
              HasSubstr("there is no line VmHWM"));
  EXPECT_FALSE(ParseProcessStatus("").ok());
}

TEST(ProcessMemory, SeesMemoryComeAndGo) {
  constexpr int64_t kBytes = 64 << 20;
  ASSERT_TRUE(ResetPeakResidentBytes().ok());
  const ProcessMemory before = ReadProcessMemory().value();
  void* const memory =
      mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  std::memset(memory, 1, kBytes);
  const ProcessMemory during = ReadProcessMemory().value();
  munmap(memory, kBytes);
  const ProcessMemory after = ReadProcessMemory().value();
  EXPECT_GE(during.resident_bytes, before.resident_bytes + kBytes * 9 / 10);
  EXPECT_GE(after.peak_resident_bytes, before.resident_bytes + kBytes * 9 / 10);
  EXPECT_LE(after.resident_bytes, before.resident_bytes + kBytes / 2);
  ASSERT_TRUE(ResetPeakResidentBytes().ok());
  EXPECT_LE(ReadProcessMemory().value().peak_resident_bytes, before.resident_bytes + kBytes / 2);
}

}  // namespace
}  // namespace zg
