#include "framework/job/launcher.h"

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
  std::filesystem::remove_all(directory);
  std::filesystem::create_directories(directory + "/a/mpirun");  // not a file
  std::filesystem::create_directories(directory + "/b");
  std::ofstream(directory + "/b/mpirun") << "#!/bin/sh\n";
  const std::string path = directory + "/none:" + directory + "/a:" + directory + "/b";
  setenv("PATH", path.c_str(), 1);
  EXPECT_EQ(FindMpirun().status().code(), StatusCode::kFailedPrecondition);  // not executable
  ASSERT_EQ(chmod((directory + "/b/mpirun").c_str(), 0755), 0);
  EXPECT_EQ(FindMpirun().value(), directory + "/b/mpirun");
}

TEST_F(LauncherTest, RefusesWhatCannotWork) {
  const std::string directory = testing::TempDir() + "/launcher_test_refuses";
  std::filesystem::create_directories(directory);
  std::ofstream(directory + "/mpirun") << "#!/bin/sh\nexit 0\n";
  ASSERT_EQ(chmod((directory + "/mpirun").c_str(), 0755), 0);
  setenv("PATH", directory.c_str(), 1);
  const char* const colon[] = {"program", ":"};
  EXPECT_THAT(LaunchRanks({.num_ranks = 2}, 2, colon).status().message(),
              HasSubstr("means something to mpirun"));
  const char* const arguments[] = {"program"};
  EXPECT_EQ(LaunchRanks({.num_ranks = 2}, 1, arguments).value(), 0);
  setenv("ZG_LAUNCHER_COLUMNS", "0", 1);  // as in a job that a foreign mpirun starts
  EXPECT_THAT(LaunchRanks({.num_ranks = 2}, 1, arguments).status().message(),
              HasSubstr("expected the mpirun of Open MPI"));
}

TEST_F(LauncherTest, AnMpirunThatWaitsForALostHostIsKilled) {
  const std::string directory = testing::TempDir() + "/launcher_test_waits";
  std::filesystem::create_directories(directory);
  const std::string edge(74, '-');
  std::ofstream(directory + "/mpirun")
      << "#!/bin/sh\necho '" << edge << "\nMPI_ABORT was invoked on rank 0 in communicator\n"
      << edge << "' >&2\nexec /bin/sleep 60\n";
  ASSERT_EQ(chmod((directory + "/mpirun").c_str(), 0755), 0);
  setenv("PATH", directory.c_str(), 1);
  const char* const arguments[] = {"program"};
  EXPECT_EQ(LaunchRanks({2, false}, 1, arguments).value(), 128 + 9);
}

TEST_F(LauncherTest, WithoutMpirunSaysWhatToInstall) {
  setenv("PATH", "", 1);
  const char* const arguments[] = {"program", "--ranks", "2"};
  const StatusOr<int> code = LaunchRanks({.num_ranks = 2}, 3, arguments);
  ASSERT_FALSE(code.ok());
  EXPECT_EQ(code.status().code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(code.status().message(), HasSubstr("no mpirun on PATH"));
  EXPECT_THAT(code.status().message(), HasSubstr("openmpi-bin"));
}

}  // namespace
}  // namespace zg
