// A file has one idea, and no more lines than a reader can keep in mind; a second idea gets its own
// file.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/lint/source_tree.h"

namespace zg::testing {
namespace {

constexpr int64_t kMostLines = 400;

int64_t NumLines(const std::string& text) {
  const bool has_open_line = !text.empty() && text.back() != '\n';
  return std::count(text.begin(), text.end(), '\n') + (has_open_line ? 1 : 0);
}

// The problem with a file; empty if there is none.
std::string TooLong(const std::string& path, const std::string& text) {
  const int64_t num_lines = NumLines(text);
  if (num_lines <= kMostLines) return "";
  return fmt::format("{}: {} lines, expected at most {}; give its second idea a file of its own",
                     path, num_lines, kMostLines);
}

TEST(FileLength, IsAtMost400Lines) {
  const int num_files = ForEachProgramFile([](const std::string& path, const std::string& text) {
    const std::string problem = TooLong(path, text);
    if (!problem.empty()) ADD_FAILURE() << problem;
  });
  EXPECT_GT(num_files, 1000) << "the tree was not found";
}

TEST(FileLength, NamesTheFileItsLinesAndTheLimit) {
  std::string text;
  for (int64_t line = 0; line < kMostLines; ++line) text += "x\n";
  EXPECT_EQ(TooLong("a.cc", text), "");
  EXPECT_EQ(TooLong("a.cc", text + "x"),
            "a.cc: 401 lines, expected at most 400; give its second idea a file of its own");
}

}  // namespace
}  // namespace zg::testing
