#include "framework/io/append_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <utility>

#include "tests/io/test_file.h"

namespace zg {
namespace {

TEST(AppendFile, GoesOnWhereTheFileEnds) {
  const std::string path = WriteTestFile("append", "one\ntwo\n");
  StatusOr<AppendFile> file = AppendFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status().message();
  ASSERT_TRUE(file->Truncate(4).ok());
  ASSERT_TRUE(file->Append("three\n").ok());
  EXPECT_EQ(ReadTestFile(path), "one\nthree\n");  // written at once, while the file is open
}

TEST(AppendFile, MakesTheFileWhereItIsMissing) {
  const std::string path = TestPath("append_new");
  std::filesystem::remove(path);
  StatusOr<AppendFile> file = AppendFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(ReadTestFile(path), "");
}

TEST(AppendFile, OneWriterAtATime) {
  const std::string path = WriteTestFile("append_locked", "");
  StatusOr<AppendFile> first = AppendFile::Open(path);
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(AppendFile::Open(path).status().message(),
            path + ": another job writes it; give each job a directory of its own");
  { const AppendFile moved = std::move(*first); }
  EXPECT_TRUE(AppendFile::Open(path).ok());
}

TEST(AppendFile, ErrorsNameTheFile) {
  EXPECT_EQ(AppendFile::Open("/no/such/file").status().message(),
            "/no/such/file: cannot be opened for writing: No such file or directory");
  StatusOr<AppendFile> full = AppendFile::Open("/dev/full");
  ASSERT_TRUE(full.ok()) << full.status().message();
  EXPECT_EQ(full->Append("x").message(), "/dev/full: cannot be written: No space left on device");
}

}  // namespace
}  // namespace zg
