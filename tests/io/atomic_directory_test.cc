// A directory appears complete or not at all.

#include "framework/io/atomic_directory.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/io/directory_test.h"
#include "tests/io/test_file.h"

namespace zg {
namespace {

namespace fs = std::filesystem;

class AtomicDirectoryTest : public DirectoryTest {
 protected:
  AtomicDirectoryTest() { fs::create_directory(root_); }

  // A directory under its temporary name, with one file.
  AtomicDirectory Made(const std::string& path, const std::string& text) const {
    StatusOr<AtomicDirectory> directory = AtomicDirectory::Create(path);
    EXPECT_TRUE(directory.ok()) << directory.status().message();
    std::ofstream(directory->temporary_path() + "/file") << text;
    return std::move(*directory);
  }

  int64_t NumEntries() const { return std::distance(fs::directory_iterator(root_), {}); }
};

TEST_F(AtomicDirectoryTest, AppearsOnCommit) {
  {
    AtomicDirectory directory = Made(root_ + "/made/", "text");
    EXPECT_FALSE(fs::exists(Path("made")));
    const Status committed = directory.Commit(/*may_replace=*/false);
    ASSERT_TRUE(committed.ok()) << committed.message();
    EXPECT_EQ(ReadTestFile(root_ + "/made/file"), "text");
  }
  EXPECT_EQ(ReadTestFile(root_ + "/made/file"), "text");
  EXPECT_EQ(NumEntries(), 1);
}

TEST_F(AtomicDirectoryTest, ReplacesAnOlderOneWhole) {
  fs::create_directory(Path("made"));
  std::ofstream(root_ + "/made/older") << "text";
  EXPECT_FALSE(Made(Path("made"), "newer").Commit(/*may_replace=*/false).ok());
  EXPECT_EQ(ReadTestFile(root_ + "/made/older"), "text");
  ASSERT_TRUE(Made(Path("made"), "newer").Commit(/*may_replace=*/true).ok());
  EXPECT_EQ(ReadTestFile(root_ + "/made/file"), "newer");
  EXPECT_FALSE(fs::exists(root_ + "/made/older"));
  EXPECT_EQ(NumEntries(), 1);
}

TEST_F(AtomicDirectoryTest, WithoutCommitNothingIsLeft) {
  { Made(Path("made"), "text"); }
  EXPECT_EQ(NumEntries(), 0);
  EXPECT_EQ(AtomicDirectory::Create(root_ + "/none/made").status().code(),
            StatusCode::kFailedPrecondition);
}

TEST_F(AtomicDirectoryTest, AFileInItsPlaceStays) {
  std::ofstream(Path("made")) << "a file";
  EXPECT_FALSE(Made(Path("made"), "text").Commit(/*may_replace=*/true).ok());
  EXPECT_EQ(ReadTestFile(Path("made")), "a file");
  EXPECT_EQ(NumEntries(), 1);
}

}  // namespace
}  // namespace zg
