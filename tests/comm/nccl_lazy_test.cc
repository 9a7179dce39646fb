// NCCL is loaded at first use, and not before.
#include "framework/comm/cuda/nccl_lazy.h"

#include <gtest/gtest.h>
#include <nccl.h>

#include <fstream>
#include <iterator>
#include <string>

namespace zg {
namespace {

bool IsLoaded() {
  std::ifstream file("/proc/self/maps");
  const std::string maps(std::istreambuf_iterator<char>(file), {});
  return maps.find("libnccl") != std::string::npos;
}

TEST(NcclLazyTest, LoadsAtTheFirstCall) {
  EXPECT_FALSE(IsLoaded());
  const Status status = LoadNccl();
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_TRUE(IsLoaded());
  EXPECT_STREQ(ncclGetErrorString(ncclSuccess), "no error");
  // No group is open, as NCCL itself reports.
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);
}

}  // namespace
}  // namespace zg
