// PreTokenizer: cuts text into the words in which byte pairs are merged. It is a list of
// expressions: each cuts the pieces of the previous one into its matches and the text between them.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "framework/base/status.h"
#include "framework/text/regex.h"

namespace zg {

// GPT-2's expression, which "use_regex" of Hugging Face's ByteLevel selects.
inline constexpr char kGpt2Pattern[] =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

struct PreTokenizer {
  std::vector<Regex> splits;  // empty: the text is one word
};

// Cuts texts; for one thread at a time.
class WordSplitter {
 public:
  using Visit = std::function<void(std::string_view word)>;

  explicit WordSplitter(const PreTokenizer& pre_tokenizer);

  // Calls `visit` with the words of `text`, valid UTF-8, in order; together they are the text. An
  // expression sees only the piece that it cuts. Error: a search was abandoned (regex.h).
  Status Split(std::string_view text, const Visit& visit);

 private:
  void SplitFrom(size_t stage, std::string_view text, const Visit& visit);

  std::vector<RegexMatcher> matchers_;
};

}  // namespace zg
