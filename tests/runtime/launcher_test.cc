#include "framework/runtime/launcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace zg {
namespace {

using ::testing::HasSubstr;

class LauncherTest : public testing::Test {
 protected:
  LauncherTest() {
    for (const char* name : {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "PMIX_RANK",
                             "PMI_RANK", "PMI_SIZE", "ZG_LAUNCHER_COLUMNS"}) {
      unsetenv(name);
    }
  }
};

TEST_F(LauncherTest, OutsideAJobThereIsNone) { EXPECT_FALSE(FindMpiJob().has_value()); }

TEST_F(LauncherTest, FindsTheJobOfMpirun) {
  setenv("OMPI_COMM_WORLD_RANK", "2", 1);
  setenv("OMPI_COMM_WORLD_SIZE", "4", 1);
  EXPECT_EQ(FindMpiJob()->rank, 2);
  EXPECT_EQ(FindMpiJob()->size, 4);
}

TEST_F(LauncherTest, FindsTheJobOfABatchSystem) {
  setenv("PMIX_RANK", "1", 1);
  EXPECT_EQ(FindMpiJob()->rank, 1);
  EXPECT_EQ(FindMpiJob()->size, 0);
  setenv("PMIX_RANK", "one", 1);
  EXPECT_FALSE(FindMpiJob().has_value());
}

TEST_F(LauncherTest, FindsMpirunOnPath) {
  const std::string directory = testing::TempDir() + "/launcher_test";
  std::filesystem::create_directories(directory + "/a/mpirun");  // not a file
  std::filesystem::create_directories(directory + "/b");
  std::ofstream(directory + "/b/mpirun") << "#!/bin/sh\n";
  const std::string path = directory + "/none:" + directory + "/a:" + directory + "/b";
  setenv("PATH", path.c_str(), 1);
  EXPECT_EQ(FindMpirun().status().code(), StatusCode::kFailedPrecondition);  // not executable
  ASSERT_EQ(chmod((directory + "/b/mpirun").c_str(), 0755), 0);
  EXPECT_EQ(FindMpirun().value(), directory + "/b/mpirun");
}

TEST_F(LauncherTest, WithoutMpirunSaysWhatToInstall) {
  setenv("PATH", "", 1);
  const char* const arguments[] = {"program", "--ranks", "2"};
  const StatusOr<int> code = LaunchRanks(2, 3, arguments);
  ASSERT_FALSE(code.ok());
  EXPECT_EQ(code.status().code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(code.status().message(), HasSubstr("no mpirun on PATH"));
  EXPECT_THAT(code.status().message(), HasSubstr("openmpi-bin"));
}

}  // namespace
}  // namespace zg
