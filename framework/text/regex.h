// Regex: a regular expression over UTF-8 text, by PCRE2. Classes such as \p{L} are those of
// Unicode 14 (PCRE2 10.42).
//
//   ZG_ASSIGN_OR_RETURN(Regex words, Regex::Compile(" ?\\p{L}+"));
//   RegexMatcher matcher(words);
//   RegexMatch match;
//   for (size_t at = 0; matcher.Find(text, at, &match); at = match.end) ...
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "framework/base/status.h"

struct pcre2_real_code_8;

namespace zg {

// Immutable, cheap to copy, for any number of threads.
class Regex {
 public:
  // Errors: PCRE2 rejects the expression; it matches the empty text.
  static StatusOr<Regex> Compile(const std::string& pattern);
  // Matches `text` itself, which must not be empty.
  static StatusOr<Regex> Literal(const std::string& text);

 private:
  friend class RegexMatcher;
  explicit Regex(std::shared_ptr<pcre2_real_code_8> code) : code_(std::move(code)) {}
  static StatusOr<Regex> Compile(const std::string& pattern, bool is_literal);

  std::shared_ptr<pcre2_real_code_8> code_;
};

// Bytes [begin, end) of the searched text.
struct RegexMatch {
  size_t begin = 0;
  size_t end = 0;
};

// The state of a search beside the expression; for one thread at a time.
class RegexMatcher {
 public:
  explicit RegexMatcher(const Regex& regex);
  RegexMatcher(RegexMatcher&& other) noexcept;
  ~RegexMatcher();

  // The first match that begins at or after `from`. `text` must be valid UTF-8 and `from` the
  // beginning of a character. False if there is none, and after an error.
  bool Find(std::string_view text, size_t from, RegexMatch* match);

  // An error if PCRE2 has abandoned a search: it needed too much memory or backtracking.
  const Status& status() const { return status_; }

 private:
  struct State;

  std::unique_ptr<State> state_;
  Status status_;
};

}  // namespace zg
