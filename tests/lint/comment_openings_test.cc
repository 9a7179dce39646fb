// A comment is a sentence with a subject and a verb, or a term. It does not begin with a genitive
// such as "Of the gradients", which leaves open what is meant.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "tests/lint/source_tree.h"

namespace zg::testing {
namespace {

bool IsCpp(std::string_view path) {
  for (const std::string_view extension : {".cc", ".cu", ".h", ".cuh"}) {
    if (path.size() > extension.size() &&
        path.substr(path.size() - extension.size()) == extension) {
      return true;
    }
  }
  return false;
}

std::string_view WithoutIndentation(std::string_view line) {
  return line.substr(std::min(line.find_first_not_of(' '), line.size()));
}

bool BeginsWith(std::string_view text, std::string_view beginning) {
  return text.substr(0, beginning.size()) == beginning;
}

// The numbers of the lines on which a comment begins with "Of": a line that is a comment, after one
// that is none or an empty one; a comment behind code; a docstring.
std::vector<int> LinesThatBeginWithOf(const std::string& path, const std::string& text) {
  const std::string marker = IsCpp(path) ? "//" : "#";
  std::vector<int> lines;
  std::istringstream stream(text);
  bool continues = false;
  int number = 1;
  for (std::string line; std::getline(stream, line); ++number) {
    const std::string_view content = WithoutIndentation(line);
    const bool is_comment = BeginsWith(content, marker);
    const bool begins = is_comment && !continues && BeginsWith(content, marker + " Of ");
    const bool is_behind_code =
        !is_comment && line.find("  " + marker + " Of ") != std::string::npos;
    const bool is_docstring = !IsCpp(path) && BeginsWith(content, R"("""Of )");
    if (begins || is_behind_code || is_docstring) lines.push_back(number);
    continues = is_comment && content != marker;
  }
  return lines;
}

TEST(CommentOpenings, AreNoGenitives) {
  const int num_files = ForEachProgramFile([](const std::string& path, const std::string& text) {
    for (const int line : LinesThatBeginWithOf(path, text)) {
      ADD_FAILURE() << fmt::format(
          "{}:{}: a comment begins with \"Of\"; say what it is, as in \"The sum of ...\"", path,
          line);
    }
  });
  EXPECT_GT(num_files, 1000) << "the tree was not found";
}

TEST(CommentOpenings, AreFound) {
  const std::string cpp =
      "// Of a block.\nint a;\n // One.\n // Of two.\n"
      "int b;  //"
      " Of b.\n";
  EXPECT_EQ(LinesThatBeginWithOf("a.h", cpp), (std::vector<int>{1, 5}));
  EXPECT_EQ(LinesThatBeginWithOf("a.py", cpp), std::vector<int>());
  EXPECT_EQ(LinesThatBeginWithOf("a.cu", "// One.\n//\n// Of two.\n"), std::vector<int>{3});
  EXPECT_EQ(LinesThatBeginWithOf("a.sh", "# Of a job.\nx=1  # Often.\n"), std::vector<int>{1});
  EXPECT_EQ(LinesThatBeginWithOf("a.py", "    \"\"\"Of a file.\"\"\"\n"), std::vector<int>{1});
}

}  // namespace
}  // namespace zg::testing
