#include "tests/lint/flag_texts.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "framework/job/flag_names.h"
#include "tests/lint/source_tree.h"

namespace zg::testing {
namespace {

bool IsUnder(const std::string& path, std::initializer_list<std::string_view> folders) {
  for (const std::string_view folder : folders) {
    if (path.rfind(folder, 0) == 0) return true;
  }
  return false;
}

// A program that uses the framework from C++ has set a field, not a flag.
TEST(FlagTexts, OnlyTheJobNamesFlags) {
  const int num_files = ForEachSource([](const std::string& path, const std::string& text) {
    if (IsUnder(path, {"framework/job/", "zero/zerograph/", "models/", "tools/"})) return;
    // The documentation of an op quotes its attributes.
    const bool quotes_settings = !IsUnder(path, {"framework/ops/"});
    for (const FlagText& found : FindFlagTexts(text)) {
      if (found.name == "--define") continue;  // a flag of Bazel
      if (found.name[0] == '-') {
        ADD_FAILURE() << fmt::format(
            "{}:{}: names the flag {}; quote the setting, such as `save_async`, and let the job "
            "name its flag (framework/job/flag_names.h)",
            path, found.line, found.name);
      } else if (quotes_settings && FlagOf(found.name.substr(1, found.name.size() - 2)).empty()) {
        ADD_FAILURE() << fmt::format("{}:{}: {} is in no line of framework/job/flag_names.cc", path,
                                     found.line, found.name);
      }
    }
  });
  EXPECT_GT(num_files, 100) << "the tree was not found";
}

std::string Found(std::string_view source) {
  std::string found;
  for (const FlagText& text : FindFlagTexts(source)) {
    found += fmt::format("{}:{} ", text.line, text.name);
  }
  return found;
}

TEST(FlagTexts, AreFoundInStringsAndComments) {
  EXPECT_EQ(Found("f(\"give --save-async\");\n// with --plan\n"), "1:--save-async 2:--plan ");
  EXPECT_EQ(Found("f(\"set `save_async`, `device=cpu`\");"), "1:`save_async` 1:`device` ");
}

TEST(FlagTexts, CodeDoesNotCount) {
  EXPECT_EQ(Found("--count; x = 1 --y; // a -- b and `count`\n"), "");
  EXPECT_EQ(Found("f('\"'); --count;"), "");
}

}  // namespace
}  // namespace zg::testing
