// ScopePattern: names modules by their path (the scope of the nodes that they made), and parameters
// by theirs. A pattern has parts joined by '.', as many as the path; `*` in a part stands for any
// characters of that part, so "blocks.*" is blocks.0, blocks.1, ... and "blocks.*.mlp" the mlp of
// each. A part `**` stands for any number of parts: "**.bias" is every bias. Everything below a
// module belongs to it.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "framework/base/status.h"

namespace zg {

class ScopePattern {
 public:
  // Error: an empty part, or characters that no module name has.
  static StatusOr<ScopePattern> Parse(const std::string& text);

  // The prefix of `scope` that is the path of a module the pattern names: "blocks.3" of
  // "blocks.3.mlp.expand" for "blocks.*". Empty if there is none.
  std::string_view ModuleOf(std::string_view scope) const;

  const std::string& text() const { return text_; }
  int num_parts() const;

 private:
  explicit ScopePattern(std::string text) : text_(std::move(text)) {}

  std::string text_;
};

// Patterns joined by commas.
StatusOr<std::vector<ScopePattern>> ParseScopePatterns(const std::string& text);
// The same, or none if the text is empty.
StatusOr<std::vector<ScopePattern>> OptionalScopePatterns(const std::string& text);

// Whether one of the patterns names the path or something that contains it.
bool MatchesAny(const std::vector<ScopePattern>& patterns, std::string_view path);

// The first `num_parts` (at least 1) parts of a scope; empty when it has fewer.
std::string_view ScopePrefix(std::string_view scope, int num_parts);

}  // namespace zg
