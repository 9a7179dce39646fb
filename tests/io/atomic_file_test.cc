#include "framework/io/atomic_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

#include "tests/io/directory_test.h"
#include "tests/io/test_file.h"

namespace zg {
namespace {

class AtomicFileTest : public DirectoryTest {
 protected:
  AtomicFileTest() { std::filesystem::create_directory(root_); }

  std::string target() const { return Path("target"); }

  size_t NumFiles() const {
    const std::filesystem::directory_iterator files(root_);
    return static_cast<size_t>(std::distance(begin(files), end(files)));
  }
};

TEST_F(AtomicFileTest, AppearsAtCommit) {
  StatusOr<AtomicFile> file = AtomicFile::Create(target());
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE(file->Write("hello ", 6).ok());
  ASSERT_TRUE(file->Write("world", 5).ok());
  EXPECT_FALSE(std::filesystem::exists(target()));
  ASSERT_TRUE(file->Commit().ok());
  EXPECT_EQ(ReadTestFile(target()), "hello world");
  EXPECT_EQ(NumFiles(), 1u);
}

TEST_F(AtomicFileTest, ReplacesAnOlderFileWhole) {
  for (const char* text : {"long text", "short"}) {
    StatusOr<AtomicFile> file = AtomicFile::Create(target());
    ASSERT_TRUE(file.ok());
    ASSERT_TRUE(file->Write(text, std::string(text).size()).ok());
    ASSERT_TRUE(file->Commit().ok());
    EXPECT_EQ(ReadTestFile(target()), text);
  }
}

TEST_F(AtomicFileTest, LeavesNothingWithoutCommit) {
  {
    StatusOr<AtomicFile> file = AtomicFile::Create(target());
    ASSERT_TRUE(file.ok());
    AtomicFile moved = std::move(file).value();
    ASSERT_TRUE(moved.Write("x", 1).ok());
    EXPECT_EQ(NumFiles(), 1u);
  }
  EXPECT_EQ(NumFiles(), 0u);
}

TEST_F(AtomicFileTest, TwoWritersDoNotMix) {
  StatusOr<AtomicFile> first = AtomicFile::Create(target());
  StatusOr<AtomicFile> second = AtomicFile::Create(target());
  ASSERT_TRUE(first.ok() && second.ok());
  ASSERT_TRUE(first->Write("first", 5).ok());
  ASSERT_TRUE(second->Write("second", 6).ok());
  ASSERT_TRUE(first->Commit().ok());
  EXPECT_EQ(ReadTestFile(target()), "first");
  ASSERT_TRUE(second->Commit().ok());
  EXPECT_EQ(ReadTestFile(target()), "second");
}

TEST_F(AtomicFileTest, AMissingDirectoryIsAnError) {
  const Status status = AtomicFile::Create(root_ + "/none/target").status();
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_NE(status.message().find("/none/target"), std::string::npos);
  EXPECT_NE(status.message().find("No such file or directory"), std::string::npos);
}

TEST_F(AtomicFileTest, AFailedWriteKeepsTheOlderFileAndLeavesNothing) {
  std::ofstream(target()) << "old";
  struct rlimit old_limit;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old_limit), 0);
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  const struct rlimit limit = {1000, old_limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  Status status;
  {
    StatusOr<AtomicFile> file = AtomicFile::Create(target());
    if (file.ok()) status = file->Write(std::string(4000, 'x').data(), 4000);
  }
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &old_limit), 0);
  std::signal(SIGXFSZ, old_handler);
  EXPECT_EQ(status.message(), target() + ": cannot be written: File too large");
  EXPECT_EQ(ReadTestFile(target()), "old");
  EXPECT_EQ(NumFiles(), 1u);
}

TEST_F(AtomicFileTest, ATargetThatIsADirectoryIsAnError) {
  std::filesystem::create_directory(target());
  EXPECT_EQ(AtomicFile::Create(target()).status().message(),
            target() + ": got a directory, which would be replaced; expected the name of a file");
  EXPECT_EQ(NumFiles(), 1u);
}

TEST_F(AtomicFileTest, APipeIsAnErrorAndStays) {
  ASSERT_EQ(mkfifo(target().c_str(), 0600), 0);
  std::filesystem::create_symlink("target", Path("link"));
  for (const std::string& path : {target(), Path("link")}) {
    EXPECT_EQ(
        WriteFileAtomically(path, "text").message(),
        path + ": got a device or pipe, which would be replaced; expected the name of a file");
  }
  EXPECT_TRUE(std::filesystem::is_fifo(target()));
  EXPECT_EQ(NumFiles(), 2u);
  EXPECT_EQ(WriteFileAtomically("", "text").message(),
            "got the path \"\", expected that of a file");
}

// Links may be relative, lead to links and to a file that does not exist yet.
TEST_F(AtomicFileTest, WritesToTheFileThatLinksLeadTo) {
  std::filesystem::create_directory(Path("elsewhere"));
  std::filesystem::create_symlink("elsewhere/second", Path("first"));
  std::filesystem::create_symlink(target(), Path("elsewhere/second"));
  for (const char* text : {"new", "replaced"}) {
    ASSERT_TRUE(WriteFileAtomically(Path("first"), text).ok());
    EXPECT_TRUE(std::filesystem::is_symlink(Path("first")));
    EXPECT_TRUE(std::filesystem::is_symlink(Path("elsewhere/second")));
    EXPECT_EQ(ReadTestFile(target()), text);
  }
  std::filesystem::create_symlink("circle", Path("circle"));
  EXPECT_EQ(WriteFileAtomically(Path("circle"), "").message(),
            Path("circle") + ": cannot be created: too many links");
}

}  // namespace
}  // namespace zg
