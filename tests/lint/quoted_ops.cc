#include "tests/lint/quoted_ops.h"

#include <algorithm>
#include <regex>

namespace zg::testing {
namespace {

// The text with comments replaced by spaces, so that positions stay.
std::string WithoutComments(std::string_view text) {
  std::string code(text);
  bool in_string = false;
  for (size_t i = 0; i < code.size(); ++i) {
    if (in_string && code[i] == '\\') {
      ++i;
    } else if (code[i] == '"' && !(i > 0 && code[i - 1] == '\'')) {
      in_string = !in_string;
    } else if (code[i] == '\n') {
      in_string = false;
    } else if (!in_string && code.compare(i, 2, "//") == 0) {
      while (i < code.size() && code[i] != '\n') code[i++] = ' ';
    }
  }
  return code;
}

// Whether the code at the end of the text begins a node, or names a function of Vars in an error.
bool MakesNode(const std::string& before) {
  static const auto& pattern = *new std::regex(
      R"((\b(Op|Ops|[Aa]ppend|append_all|Trace::Of|Function called)\(|\bMean\(("\w+", )?|)"
      R"(\b(Checked|Caller|DimOf|WithContext|OfEqualShapes|AlongDim|CompareWith|Draw)\(|)"
      R"(\bUpdateRule\{|\bAdd(Node)?\([^;]*\{)\s*$)");
  return std::regex_search(before, pattern);
}

// The matches' first groups that stand where no node begins.
template <typename Wanted>
std::vector<QuotedOp> Find(std::string_view text, const std::regex& pattern, const Wanted& wanted) {
  constexpr size_t kContext = 200;  // characters before a name that can show that it makes a node
  const std::string code = WithoutComments(text);
  std::vector<QuotedOp> found;
  for (auto match = std::sregex_iterator(code.begin(), code.end(), pattern);
       match != std::sregex_iterator(); ++match) {
    const std::string name = (*match)[1];
    const size_t begin = match->position();
    const size_t from = begin - std::min(begin, kContext);
    if (!wanted(name) || MakesNode(code.substr(from, begin - from))) continue;
    const auto line = std::count(code.begin(), code.begin() + begin, '\n') + 1;
    found.push_back({static_cast<int>(line), name});
  }
  return found;
}

}  // namespace

std::vector<QuotedOp> FindQuotedOps(std::string_view text, const std::set<std::string>& ops) {
  static const auto& quoted = *new std::regex(R"re("([a-z_0-9]+)")re");
  return Find(text, quoted, [&](const std::string& name) { return ops.count(name) != 0; });
}

std::vector<QuotedOp> FindNamedOps(std::string_view text) {
  static const auto& constant = *new std::regex(R"re(\bop_names::(k\w+))re");
  return Find(text, constant, [](const std::string&) { return true; });
}

}  // namespace zg::testing
