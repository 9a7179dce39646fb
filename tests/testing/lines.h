// Texts as lines: common helpers of the readers of golden files.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace zg::testing {

bool StartsWith(std::string_view text, std::string_view prefix);
std::string_view Trim(std::string_view text);
std::vector<std::string_view> Lines(std::string_view text);  // without their ends
std::string Join(const std::vector<std::string_view>& lines);
bool IsComment(std::string_view line);  // a line with only a comment

// The lines of two texts: those only in `before` begin with "-", those only in `after` with "+",
// common lines with a blank. Only the `context` common lines nearest to a change are included; "@@"
// with the section of the graph marks omitted lines. Empty for equal texts.
std::string Diff(std::string_view before, std::string_view after, int context);

}  // namespace zg::testing
