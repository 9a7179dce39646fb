#include "framework/io/durable_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <string>

#include "tests/io/test_file.h"

namespace zg {
namespace {

using ::testing::HasSubstr;

class DurableFileTest : public ::testing::Test {
 protected:
  void SetUp() override { std::filesystem::remove(path_); }
  void TearDown() override { std::filesystem::remove(path_); }
  const std::string path_ = TestPath("durable_file");
};

TEST_F(DurableFileTest, WritersFillTheirRanges) {
  StatusOr<DurableFile> created = DurableFile::Create(path_, 10);
  ASSERT_TRUE(created.ok()) << created.status().message();
  StatusOr<DurableFile> opened = DurableFile::Open(path_);
  ASSERT_TRUE(opened.ok());
  EXPECT_TRUE(opened->WriteAt(6, "6789", 4).ok());
  EXPECT_TRUE(created->WriteAt(0, "012", 3).ok());
  EXPECT_TRUE(created->WriteAt(3, nullptr, 0).ok());
  EXPECT_TRUE(created->Sync().ok());
  EXPECT_TRUE(opened->Sync().ok());
  EXPECT_EQ(ReadTestFile(path_), std::string("012\0\0\0006789", 10));
}

TEST_F(DurableFileTest, NeverWritesOverAnotherFile) {
  ASSERT_TRUE(DurableFile::Create(path_, 1).ok());
  EXPECT_THAT(DurableFile::Create(path_, 1).status().message(),
              HasSubstr(path_ + ": cannot be created: File exists"));
}

TEST_F(DurableFileTest, WhatIsNotThereCannotBeOpened) {
  EXPECT_THAT(DurableFile::Open(path_).status().message(),
              HasSubstr("the ranks must see one directory under this path"));
  EXPECT_THAT(DurableFile::Create(path_ + "/none", 1).status().message(),
              HasSubstr("/none: cannot be created: "));
  EXPECT_THAT(SyncDirectory(path_).message(), HasSubstr("cannot be opened"));
}

TEST_F(DurableFileTest, AnErrorAfterAShortWrite) {
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit limit = before;
  limit.rlim_cur = 6;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  StatusOr<DurableFile> file = DurableFile::Create(path_, 4);
  const Status written = file.ok() ? file->WriteAt(0, "0123456789", 10) : file.status();
  const Status created = DurableFile::Create(path_ + "2", 7).status();
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_THAT(written.message(), HasSubstr(path_ + ": cannot be written: File too large"));
  EXPECT_EQ(ReadTestFile(path_), "012345");  // bytes written before
  EXPECT_THAT(created.message(), HasSubstr("7 bytes cannot be reserved: File too large"));
  std::filesystem::remove(path_ + "2");
}

TEST_F(DurableFileTest, AFullDevice) {
  StatusOr<DurableFile> full = DurableFile::Open("/dev/full");
  ASSERT_TRUE(full.ok()) << full.status().message();
  EXPECT_THAT(full->WriteAt(0, "x", 1).message(),
              HasSubstr("/dev/full: cannot be written: No space left on device"));
}

}  // namespace
}  // namespace zg
