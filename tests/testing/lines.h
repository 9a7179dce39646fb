// Texts as lines: what the readers of golden files share.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace zg::testing {

bool StartsWith(std::string_view text, std::string_view prefix);
std::string_view Trim(std::string_view text);
std::vector<std::string_view> Lines(std::string_view text);  // without their ends
std::string Join(const std::vector<std::string_view>& lines);
bool IsComment(std::string_view line);  // nothing but a comment

// The lines of two texts: those of `before` alone begin with "-", those of `after` alone with "+",
// others with a blank. Of these only the `context` nearest to a change are there; where lines are
// left out stands "@@" with the section of the graph that goes on. Empty for equal texts.
std::string Diff(std::string_view before, std::string_view after, int context);

}  // namespace zg::testing
