#include "framework/io/mapped_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>
#include <utility>

#include "tests/io/test_file.h"

namespace zg {
namespace {

TEST(MappedFile, ShowsTheBytes) {
  const std::string path = WriteTestFile("bytes", std::string("a\0b", 3));
  StatusOr<MappedFile> file = MappedFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status().ToString();
  EXPECT_EQ(file->path(), path);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(file->data()), file->size()),
            std::string("a\0b", 3));
  MappedFile moved = std::move(file).value();
  EXPECT_EQ(moved.data()[2], 'b');
  moved = MappedFile::Open(WriteTestFile("other", "c")).value();
  EXPECT_EQ(moved.data()[0], 'c');
}

TEST(MappedFile, AnEmptyFileIsFine) {
  StatusOr<MappedFile> file = MappedFile::Open(WriteTestFile("empty", ""));
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->size(), 0u);
}

TEST(MappedFile, SaysWhyAFileCannotBeRead) {
  const std::string missing = TestPath("missing");
  EXPECT_EQ(MappedFile::Open(missing).status().ToString(),
            "not found: " + missing + ": no such file");
  EXPECT_EQ(MappedFile::Open(::testing::TempDir()).status().message(),
            ::testing::TempDir() + ": got a directory, expected a regular file");
  const std::string pipe = TestPath("pipe");
  std::filesystem::remove(pipe);
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(MappedFile::Open(pipe).status().message(),
            pipe + ": got a device or pipe, expected a regular file");
  // Files without a size that can and cannot be read.
  EXPECT_EQ(MappedFile::Open("/proc/cpuinfo").status().message(),
            "/proc/cpuinfo: got a file that does not tell its size, expected a copy of it");
  EXPECT_EQ(MappedFile::Open("/proc/self/mem").status().message(),
            "/proc/self/mem: cannot be read: Input/output error");
}

}  // namespace
}  // namespace zg
