#include "tests/testing/lines.h"

#include <fmt/format.h>

#include <algorithm>

namespace zg::testing {
namespace {

struct DiffLine {
  char mark;
  std::string_view text;
};

// By a longest common subsequence; removed lines come before added ones.
std::vector<DiffLine> AllLines(const std::vector<std::string_view>& a,
                               const std::vector<std::string_view>& b) {
  std::vector<std::vector<int>> common(a.size() + 1, std::vector<int>(b.size() + 1, 0));
  for (size_t i = a.size(); i-- > 0;) {
    for (size_t j = b.size(); j-- > 0;) {
      common[i][j] =
          a[i] == b[j] ? common[i + 1][j + 1] + 1 : std::max(common[i + 1][j], common[i][j + 1]);
    }
  }
  std::vector<DiffLine> lines;
  size_t i = 0;
  size_t j = 0;
  while (i < a.size() || j < b.size()) {
    if (i < a.size() && j < b.size() && a[i] == b[j]) {
      lines.push_back({' ', a[i]});
      ++i;
      ++j;
    } else if (i < a.size() && (j == b.size() || common[i + 1][j] >= common[i][j + 1])) {
      lines.push_back({'-', a[i++]});
    } else {
      lines.push_back({'+', b[j++]});
    }
  }
  return lines;
}

}  // namespace

bool StartsWith(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}

std::string_view Trim(std::string_view text) {
  constexpr std::string_view kSpaces = " \t\r\n";
  const size_t begin = text.find_first_not_of(kSpaces);
  if (begin == std::string_view::npos) return "";
  return text.substr(begin, text.find_last_not_of(kSpaces) + 1 - begin);
}

std::vector<std::string_view> Lines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

std::string Join(const std::vector<std::string_view>& lines) {
  std::string text;
  for (std::string_view line : lines) text.append(line).append("\n");
  return text;
}

bool IsComment(std::string_view line) { return StartsWith(Trim(line), "//"); }

std::string Diff(std::string_view before, std::string_view after, int context) {
  const std::vector<DiffLine> lines = AllLines(Lines(before), Lines(after));
  std::vector<bool> shown(lines.size(), false);
  const int size = static_cast<int>(lines.size());
  for (int i = 0; i < size; ++i) {
    if (lines[i].mark == ' ') continue;
    for (int k = std::max(0, i - context); k <= std::min(size - 1, i + context); ++k) {
      shown[k] = true;
    }
  }
  std::string text;
  std::string_view section = "forward:";  // where a fragment begins
  bool left_out = false;
  for (int i = 0; i < size; ++i) {
    const std::string_view line = lines[i].text;
    const bool is_section = !line.empty() && line.front() != ' ' && line.back() == ':';
    if (!shown[i]) {
      left_out = true;
    } else {
      // A section whose header is shown needs no mention.
      if (left_out && !is_section) text += fmt::format("@@ {}\n", section);
      left_out = false;
      text += fmt::format("{}{}\n", lines[i].mark, lines[i].text);
    }
    if (is_section) section = lines[i].text;
  }
  return text;
}

}  // namespace zg::testing
