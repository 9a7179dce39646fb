#include "framework/ir/scope_pattern.h"

#include <algorithm>
#include <vector>

#include "framework/ir/quote.h"

namespace zg {
namespace {

// Whether `part` is `pattern` with every `*` replaced by some characters.
bool Matches(std::string_view pattern, std::string_view part) {
  size_t at_pattern = 0;
  size_t at_part = 0;
  size_t star = std::string_view::npos;  // the last one seen, which matches more characters when
                                         // the rest does not match
  size_t taken_until = 0;
  while (at_part < part.size()) {
    if (at_pattern < pattern.size() && pattern[at_pattern] == '*') {
      star = at_pattern++;
      taken_until = at_part;
    } else if (at_pattern < pattern.size() && pattern[at_pattern] == part[at_part]) {
      ++at_pattern;
      ++at_part;
    } else if (star != std::string_view::npos) {
      at_pattern = star + 1;
      at_part = ++taken_until;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', at_pattern) == std::string_view::npos;
}

std::vector<std::string_view> SplitAt(char separator, std::string_view text) {
  std::vector<std::string_view> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(separator, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

using Parts = std::vector<std::string_view>;

// The number of parts that the patterns from `pattern` on match, after the first `part` parts; 0:
// none.
size_t MatchedParts(const Parts& patterns, size_t pattern, const Parts& parts, size_t part) {
  if (pattern == patterns.size()) return part;
  if (patterns[pattern] == "**") {
    for (size_t rest = part; rest <= parts.size(); ++rest) {
      const size_t matched = MatchedParts(patterns, pattern + 1, parts, rest);
      if (matched > 0) return matched;
    }
    return 0;
  }
  if (part == parts.size() || !Matches(patterns[pattern], parts[part])) return 0;
  return MatchedParts(patterns, pattern + 1, parts, part + 1);
}

std::vector<std::string_view> PartsOf(std::string_view scope) { return SplitAt('.', scope); }

bool IsLegalPart(std::string_view part) {
  return !part.empty() && std::all_of(part.begin(), part.end(),
                                      [](char c) { return c == '*' || IsNameCharacter(c); });
}

}  // namespace

StatusOr<ScopePattern> ScopePattern::Parse(const std::string& text) {
  const std::vector<std::string_view> parts = PartsOf(text);
  if (std::all_of(parts.begin(), parts.end(), IsLegalPart)) return ScopePattern(text);
  return InvalidArgument(
      "got '{}', expected the path of a module or parameter: letters, digits, '_' and '*' in parts "
      "joined by '.', such as blocks.*",
      text);
}

std::string_view ScopePattern::ModuleOf(std::string_view scope) const {
  const size_t matched = MatchedParts(PartsOf(text_), 0, PartsOf(scope), 0);
  return matched > 0 ? ScopePrefix(scope, static_cast<int>(matched)) : std::string_view();
}

int ScopePattern::num_parts() const { return static_cast<int>(PartsOf(text_).size()); }

StatusOr<std::vector<ScopePattern>> ParseScopePatterns(const std::string& text) {
  std::vector<ScopePattern> patterns;
  for (const std::string_view item : SplitAt(',', text)) {
    ZG_ASSIGN_OR_RETURN(ScopePattern pattern, ScopePattern::Parse(std::string(item)));
    patterns.push_back(std::move(pattern));
  }
  return patterns;
}

StatusOr<std::vector<ScopePattern>> OptionalScopePatterns(const std::string& text) {
  if (text.empty()) return std::vector<ScopePattern>();
  return ParseScopePatterns(text);
}

bool MatchesAny(const std::vector<ScopePattern>& patterns, std::string_view path) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const ScopePattern& pattern) { return !pattern.ModuleOf(path).empty(); });
}

std::string_view ScopePrefix(std::string_view scope, int num_parts) {
  const std::vector<std::string_view> parts = PartsOf(scope);
  if (static_cast<int>(parts.size()) < num_parts) return {};
  const std::string_view last = parts[num_parts - 1];
  return scope.substr(0, last.data() + last.size() - scope.data());
}

}  // namespace zg
