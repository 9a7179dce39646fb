#include "models/text/default_text.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "framework/io/token_dataset.h"
#include "tests/io/test_file.h"

namespace zg::models {
namespace {

TEST(DefaultText, IsThatOfThePackageOrNothing) {
  EXPECT_TRUE(DefaultData("/no/such").empty());
  EXPECT_TRUE(DefaultData(WriteTestFile("a.txt", "a file")).empty());
  const std::string directory = TestPath("prose");
  std::filesystem::create_directories(directory);
  EXPECT_EQ(DefaultData(directory), std::vector<std::string>{directory});
}

TEST(DefaultText, HasAtLeastTenMegabytes) {
  const StatusOr<TokenDataset> data = TokenDataset::Open(DefaultData());
  ASSERT_TRUE(data.ok()) << data.status().ToString() << "; tools/setup.sh installs python3.11-doc";
  EXPECT_GT(data->size(), 10'000'000u);
}

TEST(DefaultText, TheSourcesLieBesideTheProgram) {
  const std::filesystem::path path = SourceText();
  EXPECT_EQ(path.filename(), "corpus.txt");
  EXPECT_TRUE(path.is_absolute());
}

}  // namespace
}  // namespace zg::models
