// Examples are C++17, which a user may compile with -Wpedantic: designated initialisers ({.name = value}),
// which our own sources have as an extension, came with C++20.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <string>
#include <vector>

#include "tests/lint/source_tree.h"

namespace zg::testing {
namespace {

// The comments of a source, in their lines; the slashes and the code are left out.
std::string CommentsOf(const std::string& source) {
  std::string comments;
  size_t begin = 0;
  while (begin < source.size()) {
    const size_t end = std::min(source.find('\n', begin), source.size());
    const size_t slashes = source.find("//", begin);
    if (slashes < end) comments += source.substr(slashes + 2, end - slashes - 2);
    comments += '\n';
    begin = end + 1;
  }
  return comments;
}

// Lines, counted from 1, where designated initialisers begin.
std::vector<int64_t> DesignatedLines(const std::string& text) {
  static const auto& pattern = *new std::regex("\\{\\s*\\.[a-z]\\w* *=");
  std::vector<int64_t> lines;
  for (auto match = std::sregex_iterator(text.begin(), text.end(), pattern);
       match != std::sregex_iterator(); ++match) {
    lines.push_back(std::count(text.begin(), text.begin() + match->position(), '\n') + 1);
  }
  return lines;
}

void ExpectNone(const std::string& path, const std::string& text) {
  for (const int64_t line : DesignatedLines(text)) {
    ADD_FAILURE() << fmt::format(
        "{}:{}: an example with {{.name = value}}, which C++17 does not have; assign the fields",
        path, line);
  }
}

TEST(ExampleCode, OfDocumentsIsCpp17) {
  EXPECT_GT(ForEachDocument(ExpectNone), 5) << "the tree was not found";
}

TEST(ExampleCode, OfHeadersIsCpp17) {
  const int num_files = ForEachSource([](const std::string& path, const std::string& text) {
    const bool is_header = path.size() > 2 && path.compare(path.size() - 2, 2, ".h") == 0;
    if (is_header) ExpectNone(path, CommentsOf(text));
  });
  EXPECT_GT(num_files, 100) << "the tree was not found";
}

TEST(ExampleCode, IsFoundInCommentsWithItsLine) {
  const std::string source =
      "int a;\n//   f({\n//     .name = 1});\ng({.x = 2});  // h({.y = 3})\n";
  EXPECT_EQ(DesignatedLines(CommentsOf(source)), (std::vector<int64_t>{2, 4}));
  EXPECT_EQ(DesignatedLines("Adam{.lr = 1}"), (std::vector<int64_t>{1}));
}

TEST(ExampleCode, OtherBracesDoNotCount) {
  EXPECT_EQ(DesignatedLines("zg::optim::Adam{1e-2}; {x.y = 1}; `{..., .bin}`"),
            std::vector<int64_t>());
}

}  // namespace
}  // namespace zg::testing
