#include "tests/lint/flag_texts.h"

#include <algorithm>
#include <regex>

namespace zg::testing {
namespace {

enum class Part { kCode, kString, kComment };

// The part of the source that every character belongs to. Block comments and raw strings are not
// distinguished from code.
std::vector<Part> PartsOf(std::string_view source) {
  std::vector<Part> parts(source.size(), Part::kCode);
  Part now = Part::kCode;
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\n') {
      now = Part::kCode;
    } else if (now == Part::kCode && source.substr(i, 2) == "//") {
      now = Part::kComment;
    } else if (now != Part::kComment && source[i] == '"' && !(i > 0 && source[i - 1] == '\'')) {
      now = now == Part::kString ? Part::kCode : Part::kString;
    } else if (now == Part::kString && source[i] == '\\') {
      parts[i++] = now;
    }
    if (i < source.size()) parts[i] = now;
  }
  return parts;
}

}  // namespace

std::vector<FlagText> FindFlagTexts(std::string_view source) {
  const std::string text(source);
  const std::vector<Part> parts = PartsOf(source);
  static const auto& pattern = *new std::regex("--[a-z][a-z-]+|`([a-z_.]+)(=[^`\"]*)?`");
  std::vector<FlagText> found;
  for (auto match = std::sregex_iterator(text.begin(), text.end(), pattern);
       match != std::sregex_iterator(); ++match) {
    const size_t begin = match->position();
    const bool is_flag = text[begin] == '-';
    if (parts[begin] != Part::kString && !(is_flag && parts[begin] == Part::kComment)) continue;
    const auto line = std::count(text.begin(), text.begin() + begin, '\n') + 1;
    found.push_back({static_cast<int>(line), is_flag ? match->str() : "`" + match->str(1) + "`"});
  }
  return found;
}

}  // namespace zg::testing
